/* The longest program of handlers: as many instructions and constants as a daemon takes. It is
 * written in assembler, so that the compiler cannot change the number of instructions. */
const unsigned char constants[28672] = {1};

__asm__(".text\n"
        ".globl payload\n"
        ".type payload, @function\n"
        "payload:\n"
        "r1 = constants ll\n" /* counts as two */
        ".rept 4093\n"
        "r0 = 0\n"
        ".endr\n"
        "exit\n"
        ".size payload, . - payload\n");
