/* SPDX-License-Identifier: Apache-2.0 */
/* How the guest is entered: at the processor's reset, in place of a BIOS (16 bits), and at a tick. */
	.section .text
	.globl on_tick
	.code32
flat:	mov $16, %eax
	mov %eax, %ds
	mov %eax, %es
	mov %eax, %ss
	mov $stack, %esp
	call run

on_tick:
	pusha
	cld
	call tick
	popa
	iret

	.section .rodata
	.balign 8
gdt:	.quad 0, 0x00cf9a000000ffff, 0x00cf92000000ffff	/* flat code, flat data */

	.section .entry, "ax"	/* the last 64 bytes below 4 GiB, where CS begins at 0xffff0000 */
	.code16
entry:	cli
	lgdtl %cs:0xffc0 + gdtr - entry
	mov $0x11, %eax		/* CR0.PE and ET; no paging */
	mov %eax, %cr0
	ljmpl $8, $flat
gdtr:	.word 23
	.long gdt
	.org 48
reset:	jmp entry
	.org 64

	.bss
	.balign 16
	.skip 4096
stack:
	.section .note.GNU-stack, "", @progbits
