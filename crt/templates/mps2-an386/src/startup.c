/* SPDX-License-Identifier: Apache-2.0
 * From reset to main. */
#include "mps2_an386.h"

extern uint32_t stack_top, data_begin, data_end, data_load, bss_begin, bss_end; /* the linker script's */
int main(void);

volatile uint32_t systick_wraps;

void Reset_Handler(void);
static void SysTick_Handler(void) { ++systick_wraps; }
static void stop_here(void) {
  for (;;) {
  }
}

void Reset_Handler(void) {
  uint32_t *to;
  const uint32_t *from = &data_load;
  COPROCESSOR_ACCESS |= 0xfu << 20; /* the floating point unit, before anything may use it */
  __asm__ volatile("dsb\nisb" ::: "memory");
  for (to = &data_begin; to < &data_end; ++to) *to = *from++;
  for (to = &bss_begin; to < &bss_end; ++to) *to = 0;
  (void)main();
  stop_here();
}

typedef void (*Handler)(void);
__attribute__((section(".vectors"), used)) static const Handler vectors[16] = {
    (Handler)(uintptr_t)&stack_top, Reset_Handler, stop_here, stop_here, stop_here, stop_here, stop_here, 0, 0, 0, 0,
    stop_here, stop_here, 0, stop_here, SysTick_Handler};
