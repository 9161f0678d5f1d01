#pragma once

namespace torpor::sass {

// Opcodes, bits 0 to 8 of an instruction, that readers of machine code need by name. The table of
// all opcodes that the emulator translates is in emulator/sass/opcodes.cc.
inline constexpr unsigned kMov = 0x002;
inline constexpr unsigned kSel = 0x007;
inline constexpr unsigned kIadd3 = 0x010;
inline constexpr unsigned kLea = 0x011;
inline constexpr unsigned kLop3 = 0x012;
inline constexpr unsigned kShf = 0x019;
inline constexpr unsigned kImad = 0x024;
inline constexpr unsigned kHfma2 = 0x031;
inline constexpr unsigned kHfma2Mma = 0x035;
inline constexpr unsigned kUldc = 0x0b9;
inline constexpr unsigned kCallAbsolute = 0x143;
inline constexpr unsigned kCallRelative = 0x144;
inline constexpr unsigned kBra = 0x147;
inline constexpr unsigned kBrx = 0x149;
inline constexpr unsigned kJmx = 0x14c;
inline constexpr unsigned kExit = 0x14d;
inline constexpr unsigned kLepc = 0x14e;
inline constexpr unsigned kRet = 0x150;
inline constexpr unsigned kLdc = 0x182;

// ST, STG, STL, STS
constexpr bool IsStore(unsigned opcode) { return opcode >= 0x185 && opcode <= 0x188; }
// Texture fetches and queries
constexpr bool IsTexture(unsigned opcode) { return opcode >= 0x160 && opcode < 0x170; }
// Branches, calls, barriers of convergence and LEPC, which reads the program counter
constexpr bool IsControl(unsigned opcode) { return opcode >= 0x140 && opcode < 0x160; }

}  // namespace torpor::sass
