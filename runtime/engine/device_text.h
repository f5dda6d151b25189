/* device_text.h - inside engine/ only: kernels as text for compilers of devices (memext/cell_device.h). */
#ifndef MX_DEVICE_TEXT_H
#define MX_DEVICE_TEXT_H

#include "engine/work.h"

/* The whole text for a problem whose arrays lie as in this view, to be freed. -ENOMEM; -ENOTSUP with a sentence
 * where there is no text: a kernel that was built elsewhere. */
int mx_device_text(const struct mx_work *work, const struct mx_view *view, mx_why *why, char **out);

/* Names of the kernels in it: of all levels, or of even and of odd ones. */
int32_t mx_device_kernels(const struct mx_problem *problem, const char *const **names);

#endif
