/* SPDX-License-Identifier: Apache-2.0
 * The board's parts that the project uses: Arm MPS2 with the image AN386, a Cortex-M4 at 25 MHz. */
#ifndef MPS2_AN386_H_
#define MPS2_AN386_H_
#include <stdint.h>

#define REGISTER(address) (*(volatile uint32_t*)(address))
#define CLOCK_HZ 25000000.0

/* CMSDK UART 0 */
#define UART_DATA REGISTER(0x40004000u)
#define UART_STATE REGISTER(0x40004004u) /* 1: the sender is busy; 2: a byte has come */
#define UART_CONTROL REGISTER(0x40004008u)
#define UART_DIVIDER REGISTER(0x40004010u)

/* SysTick, 24 bits, counting down with the processor's clock */
#define SYSTICK_CONTROL REGISTER(0xe000e010u)
#define SYSTICK_RELOAD REGISTER(0xe000e014u)
#define SYSTICK_VALUE REGISTER(0xe000e018u)
#define SYSTICK_PERIOD 0x1000000u

#define COPROCESSOR_ACCESS REGISTER(0xe000ed88u)

extern volatile uint32_t systick_wraps;

#endif /* MPS2_AN386_H_ */
