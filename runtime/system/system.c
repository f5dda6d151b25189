#include "system/system.h"

#include <string.h>

static const struct {
    const char *name;
    int64_t bytes;
} dtypes[MX_DTYPES] = {[MX_F64] = {"f64", 8},
                       [MX_F32] = {"f32", 4},
                       [MX_U8] = {"u8", 1},
                       [MX_U16] = {"u16", 2},
                       [MX_I16] = {"i16", 2}};

int64_t mx_dtype_bytes(enum mx_dtype dtype) { return dtypes[dtype].bytes; }

const char *mx_dtype_name(enum mx_dtype dtype) { return dtypes[dtype].name; }

bool mx_dtype_find(const char *name, enum mx_dtype *out) {
    for (int i = 0; i < MX_DTYPES; i++)
        if (strcmp(name, dtypes[i].name) == 0) return *out = (enum mx_dtype)i, true;
    return false;
}
