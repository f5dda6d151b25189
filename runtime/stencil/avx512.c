#include "stencil/kernels.h"
const mx_kernel_table mx_kernels_avx512 = {{0}};
