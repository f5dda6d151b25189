/* SPDX-License-Identifier: BSD-3-Clause */
/* Total-variation denoising: descends the gradient of E(u) = sum(n + lambda/2 (u - f)^2), n^2 = epsilon^2 + 1/2 of the sum of squares
 * of the differences to the six neighbours. f: the noisy image, 0 to 255, which is 0 to 1. E falls at every step if
 * tau <= 1 / (12/epsilon + lambda). With sides that mirror, nothing flows out of the image. energy: E. */
#define MX_NAME "denoising"
#define MX_RADIUS 2
#define MX_REAL float
#define MX_STATE(F) F(u, float)
#define MX_FIXED(F) F(f, uint8_t)
#define MX_PARAMS(P) P(tau, 0.0016) P(lambda, 16) P(epsilon, 0.02)
#define MX_REDUCES(R) R(energy, MX_SUM)
#include <memext/cell.h>

#define SQUARE(a, b) (((a) - (b)) * ((a) - (b)))
#define TO(dx, dy, dz, ax, ay, az) SQUARE(AT(u, dx + ax, dy + ay, dz + az), AT(u, dx, dy, dz))
#define SQUARES(dx, dy, dz)                                                                                          \
    (TO(dx, dy, dz, -1, 0, 0) + TO(dx, dy, dz, 1, 0, 0) + TO(dx, dy, dz, 0, -1, 0) + TO(dx, dy, dz, 0, 1, 0)          \
     + TO(dx, dy, dz, 0, 0, -1) + TO(dx, dy, dz, 0, 0, 1))
#define INVERSE(dx, dy, dz) (1 / sqrtf(PARAM(epsilon) * PARAM(epsilon) + 0.5f * SQUARES(dx, dy, dz)))
#define FLOW(dx, dy, dz) ((here + INVERSE(dx, dy, dz)) * (AT(u, dx, dy, dz) - AT(u, 0, 0, 0)))

MX_CELL
    const float here = INVERSE(0, 0, 0), f = (float)AT(f, 0, 0, 0) / 255;
    const float flow = FLOW(-1, 0, 0) + FLOW(1, 0, 0) + FLOW(0, -1, 0) + FLOW(0, 1, 0) + FLOW(0, 0, -1) + FLOW(0, 0, 1);
    SET(u, AT(u, 0, 0, 0) + PARAM(tau) * (0.5f * flow + PARAM(lambda) * (f - AT(u, 0, 0, 0))));
MX_END

#define WIDE(dx, dy, dz) ((double)AT(u, dx, dy, dz) - AT(u, 0, 0, 0))
#define WIDE2(dx, dy, dz) (WIDE(dx, dy, dz) * WIDE(dx, dy, dz))

MX_REDUCE(energy)
    const double squares = WIDE2(-1, 0, 0) + WIDE2(1, 0, 0) + WIDE2(0, -1, 0) + WIDE2(0, 1, 0) + WIDE2(0, 0, -1) + WIDE2(0, 0, 1);
    const double epsilon = PARAM(epsilon), apart = AT(u, 0, 0, 0) - (double)AT(f, 0, 0, 0) / 255;
    RESULT(sqrt(epsilon * epsilon + 0.5 * squares) + 0.5 * PARAM(lambda) * (apart * apart));
MX_END
