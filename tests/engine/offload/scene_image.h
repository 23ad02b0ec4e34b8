/*
 * The program of a scene's handlers, which follow the plan of each message (scene.h says how plans
 * are written), and the layout of what these count at the beginning of the region.
 *
 * Thread: one.
 */
#ifndef PWC_TESTS_ENGINE_SCENE_IMAGE_H
#define PWC_TESTS_ENGINE_SCENE_IMAGE_H

#include <stdint.h>
#include "tests/engine/offload/scene.h"

#define HOST_PUT  (1 << 20) /* bit in the id of a put from host memory */
#define RERUNS_AT (SCENE_MESSAGES * HANDLER_STAGES)
#define BYTES_AT  (2u * RERUNS_AT)
#define GOTS_AT   (BYTES_AT + SCENE_MESSAGES)
#define LAST_AT   (BYTES_AT - 3)      /* in a scene of Longs: the last message's arguments */
#define GOT       (UINT64_C(1) << 31) /* bit in the id of a get: number << 32 | GOT | plan */
static_assert(8 * (GOTS_AT + SCENE_MESSAGES) <= SCENE_PLACE, "puts go behind the counts");

/* Writes an image with these handlers (1 << enum handler_stage) to `words`, which has 256 of them.
 * All sends go to the target with this index. Returns the size of the image. */
uint32_t scene_image(uint64_t *words, uint32_t handlers, uint32_t target);

#endif
