#pragma once

#include <string_view>

#include "emulator/sass/emitter.h"
#include "nvidia/machine_code/instruction.h"
#include "nvidia/machine_code/opcode.h"

// The table of all opcodes, and the functions that translate them.
namespace torpor::sass {

// Adds the statements of `instruction`; the caller takes care of the guard.
using Lift = void (*)(Emitter& to, const Instruction& instruction);

struct OpcodeEntry {
  unsigned opcode;  // bits 0 to 8
  std::string_view name;
  Lift lift;
};

// Returns null for an unknown opcode.
const OpcodeEntry* FindOpcode(unsigned opcode);

// For instructions without visible effect: scoreboards, hints, reconvergence (the emulator finds
// its own).
void LiftNothing(Emitter& to, const Instruction& instruction);

// lift_integer.cc: moves and integer arithmetic
void LiftMov(Emitter& to, const Instruction& instruction);
void LiftSel(Emitter& to, const Instruction& instruction);
void LiftImad(Emitter& to, const Instruction& instruction);
void LiftImadWide(Emitter& to, const Instruction& instruction);
void LiftImadHi(Emitter& to, const Instruction& instruction);
void LiftIadd3(Emitter& to, const Instruction& instruction);
void LiftLea(Emitter& to, const Instruction& instruction);
void LiftIsetp(Emitter& to, const Instruction& instruction);
void LiftImnmx(Emitter& to, const Instruction& instruction);
void LiftIabs(Emitter& to, const Instruction& instruction);
void LiftIdp(Emitter& to, const Instruction& instruction);
void LiftVabsdiff(Emitter& to, const Instruction& instruction);

// lift_logic.cc: bits and predicates
void LiftLop3(Emitter& to, const Instruction& instruction);
void LiftPlop3(Emitter& to, const Instruction& instruction);
void LiftPlop3Sign(Emitter& to, const Instruction& instruction);
void LiftShf(Emitter& to, const Instruction& instruction);
void LiftPrmt(Emitter& to, const Instruction& instruction);
void LiftFlo(Emitter& to, const Instruction& instruction);
void LiftPopc(Emitter& to, const Instruction& instruction);
void LiftBrev(Emitter& to, const Instruction& instruction);
void LiftBmsk(Emitter& to, const Instruction& instruction);
void LiftSgxt(Emitter& to, const Instruction& instruction);
void LiftP2r(Emitter& to, const Instruction& instruction);
void LiftR2p(Emitter& to, const Instruction& instruction);

// lift_memory.cc: loads, stores, constants and fences
void LiftLdg(Emitter& to, const Instruction& instruction);
void LiftStg(Emitter& to, const Instruction& instruction);
void LiftLd(Emitter& to, const Instruction& instruction);
void LiftSt(Emitter& to, const Instruction& instruction);
void LiftLds(Emitter& to, const Instruction& instruction);
void LiftSts(Emitter& to, const Instruction& instruction);
void LiftLdl(Emitter& to, const Instruction& instruction);
void LiftStl(Emitter& to, const Instruction& instruction);
void LiftUldc(Emitter& to, const Instruction& instruction);
void LiftLdc(Emitter& to, const Instruction& instruction);
void LiftMembar(Emitter& to, const Instruction& instruction);
void LiftQspc(Emitter& to, const Instruction& instruction);

// lift_atomic.cc: atomics and reductions
void LiftAtomg(Emitter& to, const Instruction& instruction);
void LiftAtom(Emitter& to, const Instruction& instruction);
void LiftAtomgCas(Emitter& to, const Instruction& instruction);
void LiftAtomCas(Emitter& to, const Instruction& instruction);
void LiftAtoms(Emitter& to, const Instruction& instruction);
void LiftAtomsCas(Emitter& to, const Instruction& instruction);
void LiftRed(Emitter& to, const Instruction& instruction);

// lift_float.cc: single precision
void LiftFadd(Emitter& to, const Instruction& instruction);
void LiftFmul(Emitter& to, const Instruction& instruction);
void LiftFfma(Emitter& to, const Instruction& instruction);
void LiftFmnmx(Emitter& to, const Instruction& instruction);
void LiftFsel(Emitter& to, const Instruction& instruction);
void LiftFsetp(Emitter& to, const Instruction& instruction);
void LiftFset(Emitter& to, const Instruction& instruction);
void LiftFchk(Emitter& to, const Instruction& instruction);

// lift_double.cc: double precision
void LiftDadd(Emitter& to, const Instruction& instruction);
void LiftDmul(Emitter& to, const Instruction& instruction);
void LiftDfma(Emitter& to, const Instruction& instruction);
void LiftDsetp(Emitter& to, const Instruction& instruction);

// lift_special.cc: MUFU: reciprocals, roots, powers, sines
void LiftMufu(Emitter& to, const Instruction& instruction);

// lift_convert.cc: conversions
void LiftF2f(Emitter& to, const Instruction& instruction);
void LiftFrnd(Emitter& to, const Instruction& instruction);
void LiftF2i(Emitter& to, const Instruction& instruction);
void LiftI2f(Emitter& to, const Instruction& instruction);
void LiftI2i(Emitter& to, const Instruction& instruction);

// lift_half.cc: packed half precision
void LiftHadd2(Emitter& to, const Instruction& instruction);
void LiftHmul2(Emitter& to, const Instruction& instruction);
void LiftHfma2(Emitter& to, const Instruction& instruction);
void LiftHsetp2(Emitter& to, const Instruction& instruction);
void LiftHset2(Emitter& to, const Instruction& instruction);

// lift_matrix.cc: matrix products and their loads
void LiftHmma(Emitter& to, const Instruction& instruction);
void LiftImma(Emitter& to, const Instruction& instruction);
void LiftBmma(Emitter& to, const Instruction& instruction);
void LiftLdsm(Emitter& to, const Instruction& instruction);

// lift_warp.cc: special registers, exchange between lanes, barriers
void LiftS2r(Emitter& to, const Instruction& instruction);
void LiftS2ur(Emitter& to, const Instruction& instruction);
void LiftCs2r(Emitter& to, const Instruction& instruction);
void LiftR2ur(Emitter& to, const Instruction& instruction);
void LiftVote(Emitter& to, const Instruction& instruction);
void LiftShfl(Emitter& to, const Instruction& instruction);
void LiftMatch(Emitter& to, const Instruction& instruction);
void LiftWarpsync(Emitter& to, const Instruction& instruction);
void LiftBar(Emitter& to, const Instruction& instruction);
void LiftB2r(Emitter& to, const Instruction& instruction);
void LiftNanosleep(Emitter& to, const Instruction& instruction);

// lift_control.cc: branches, calls and the end of a thread
void LiftBra(Emitter& to, const Instruction& instruction);
void LiftBrx(Emitter& to, const Instruction& instruction);
void LiftExit(Emitter& to, const Instruction& instruction);
void LiftCallRelative(Emitter& to, const Instruction& instruction);
void LiftCallAbsolute(Emitter& to, const Instruction& instruction);
void LiftRet(Emitter& to, const Instruction& instruction);
void LiftLepc(Emitter& to, const Instruction& instruction);
void LiftTrap(Emitter& to, const Instruction& instruction);

}  // namespace torpor::sass
