/* device.h - a device as core's own files see it. */
#ifndef MX_DEVICE_H
#define MX_DEVICE_H

#include "core/place.h"
#include "core/queue.h"

#include <pthread.h>

struct mx_device {
    const struct mx_backend *backend; /* what is called */
    const struct mx_backend *inner;   /* what it stands for: differs under the fault wrapper */
    void *state;
    struct mx_queue *queue;
    struct mx_device_options options; /* defaults filled in; strings point below */
    char backend_name[64], fault[256];
    struct mx_found found;
    struct mx_backend_facts facts; /* note: guarded by lock */

    pthread_mutex_t lock; /* superblock, extents, Buffers, note */
    bool extent_open[MX_EXTENTS];
    bool told_registration; /* the note tells already that memory could not be registered */
};

/* Tells the backend of DRAM that transfers will use; what it refuses goes to the note. */
void mx_device_register(mx_device *device, void *base, uint64_t bytes);
void mx_device_unregister(mx_device *device, void *base);
/* Space left for Buffers. Lock held. */
uint64_t mx_device_room(const mx_device *device);

#endif
