# Benchmarks of experiments/bench: they print figures and neither pass nor fail; not installed.
add_executable(bench_engine experiments/bench/bench_engine.c)
target_include_directories(bench_engine PRIVATE runtime/include runtime)
target_link_libraries(bench_engine PRIVATE memext_static)
add_executable(bench_observe experiments/bench/bench_observe.c $<TARGET_OBJECTS:mx_cli>)
target_include_directories(bench_observe PRIVATE runtime/include ${CMAKE_BINARY_DIR}/view/cli)
target_link_libraries(bench_observe PRIVATE memext_static ${MX_LINK})
