# Benchmarks of experiments/bench: they print figures and neither pass nor fail; not installed.
add_executable(bench_engine experiments/bench/bench_engine.c)
target_include_directories(bench_engine PRIVATE runtime/include runtime)
target_link_libraries(bench_engine PRIVATE memext_static)
