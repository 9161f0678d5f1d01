#pragma once

#include <string_view>

#include "emulator/sass/emitter.h"
#include "nvidia/machine_code/instruction.h"
#include "nvidia/machine_code/opcode.h"

// The table of all opcodes, and the functions that translate them.
namespace torpor::sass {

// Adds the statements of `instruction`; the caller takes care of the guard.
using Lift = void (*)(Emitter& to, const MachineInstruction& instruction);

struct OpcodeEntry {
  unsigned opcode;  // bits 0 to 8
  std::string_view name;
  Lift lift;
};

// Returns null for an unknown opcode.
const OpcodeEntry* FindOpcode(unsigned opcode);

// For instructions without visible effect: scoreboards, hints, reconvergence (the emulator finds
// its own).
void LiftNothing(Emitter& to, const MachineInstruction& instruction);

// lift_integer.cc: moves and integer arithmetic
void LiftMov(Emitter& to, const MachineInstruction& instruction);
void LiftSel(Emitter& to, const MachineInstruction& instruction);
void LiftImad(Emitter& to, const MachineInstruction& instruction);
void LiftImadWide(Emitter& to, const MachineInstruction& instruction);
void LiftImadHi(Emitter& to, const MachineInstruction& instruction);
void LiftIadd3(Emitter& to, const MachineInstruction& instruction);
void LiftLea(Emitter& to, const MachineInstruction& instruction);
void LiftIsetp(Emitter& to, const MachineInstruction& instruction);
void LiftImnmx(Emitter& to, const MachineInstruction& instruction);
void LiftIabs(Emitter& to, const MachineInstruction& instruction);
void LiftIdp(Emitter& to, const MachineInstruction& instruction);
void LiftVabsdiff(Emitter& to, const MachineInstruction& instruction);

// lift_logic.cc: bits and predicates
void LiftLop3(Emitter& to, const MachineInstruction& instruction);
void LiftPlop3(Emitter& to, const MachineInstruction& instruction);
void LiftPlop3Sign(Emitter& to, const MachineInstruction& instruction);
void LiftShf(Emitter& to, const MachineInstruction& instruction);
void LiftPrmt(Emitter& to, const MachineInstruction& instruction);
void LiftFlo(Emitter& to, const MachineInstruction& instruction);
void LiftPopc(Emitter& to, const MachineInstruction& instruction);
void LiftBrev(Emitter& to, const MachineInstruction& instruction);
void LiftBmsk(Emitter& to, const MachineInstruction& instruction);
void LiftSgxt(Emitter& to, const MachineInstruction& instruction);
void LiftP2r(Emitter& to, const MachineInstruction& instruction);
void LiftR2p(Emitter& to, const MachineInstruction& instruction);

// lift_memory.cc: loads, stores, constants and fences
void LiftLdg(Emitter& to, const MachineInstruction& instruction);
void LiftStg(Emitter& to, const MachineInstruction& instruction);
void LiftLd(Emitter& to, const MachineInstruction& instruction);
void LiftSt(Emitter& to, const MachineInstruction& instruction);
void LiftLds(Emitter& to, const MachineInstruction& instruction);
void LiftSts(Emitter& to, const MachineInstruction& instruction);
void LiftLdl(Emitter& to, const MachineInstruction& instruction);
void LiftStl(Emitter& to, const MachineInstruction& instruction);
void LiftUldc(Emitter& to, const MachineInstruction& instruction);
void LiftLdc(Emitter& to, const MachineInstruction& instruction);
void LiftMembar(Emitter& to, const MachineInstruction& instruction);
void LiftQspc(Emitter& to, const MachineInstruction& instruction);

// lift_atomic.cc: atomics and reductions
void LiftAtomg(Emitter& to, const MachineInstruction& instruction);
void LiftAtom(Emitter& to, const MachineInstruction& instruction);
void LiftAtomgCas(Emitter& to, const MachineInstruction& instruction);
void LiftAtomCas(Emitter& to, const MachineInstruction& instruction);
void LiftAtoms(Emitter& to, const MachineInstruction& instruction);
void LiftAtomsCas(Emitter& to, const MachineInstruction& instruction);
void LiftRed(Emitter& to, const MachineInstruction& instruction);

// lift_float.cc: single precision
void LiftFadd(Emitter& to, const MachineInstruction& instruction);
void LiftFmul(Emitter& to, const MachineInstruction& instruction);
void LiftFfma(Emitter& to, const MachineInstruction& instruction);
void LiftFmnmx(Emitter& to, const MachineInstruction& instruction);
void LiftFsel(Emitter& to, const MachineInstruction& instruction);
void LiftFsetp(Emitter& to, const MachineInstruction& instruction);
void LiftFset(Emitter& to, const MachineInstruction& instruction);
void LiftFchk(Emitter& to, const MachineInstruction& instruction);

// lift_double.cc: double precision
void LiftDadd(Emitter& to, const MachineInstruction& instruction);
void LiftDmul(Emitter& to, const MachineInstruction& instruction);
void LiftDfma(Emitter& to, const MachineInstruction& instruction);
void LiftDsetp(Emitter& to, const MachineInstruction& instruction);

// lift_special.cc: MUFU: reciprocals, roots, powers, sines
void LiftMufu(Emitter& to, const MachineInstruction& instruction);

// lift_convert.cc: conversions
void LiftF2f(Emitter& to, const MachineInstruction& instruction);
void LiftFrnd(Emitter& to, const MachineInstruction& instruction);
void LiftF2i(Emitter& to, const MachineInstruction& instruction);
void LiftI2f(Emitter& to, const MachineInstruction& instruction);
void LiftI2i(Emitter& to, const MachineInstruction& instruction);

// lift_half.cc: packed half precision
void LiftHadd2(Emitter& to, const MachineInstruction& instruction);
void LiftHmul2(Emitter& to, const MachineInstruction& instruction);
void LiftHfma2(Emitter& to, const MachineInstruction& instruction);
void LiftHsetp2(Emitter& to, const MachineInstruction& instruction);
void LiftHset2(Emitter& to, const MachineInstruction& instruction);

// lift_matrix.cc: matrix products and their loads
void LiftHmma(Emitter& to, const MachineInstruction& instruction);
void LiftImma(Emitter& to, const MachineInstruction& instruction);
void LiftBmma(Emitter& to, const MachineInstruction& instruction);
void LiftLdsm(Emitter& to, const MachineInstruction& instruction);

// lift_warp.cc: special registers, exchange between lanes, barriers
void LiftS2r(Emitter& to, const MachineInstruction& instruction);
void LiftS2ur(Emitter& to, const MachineInstruction& instruction);
void LiftCs2r(Emitter& to, const MachineInstruction& instruction);
void LiftR2ur(Emitter& to, const MachineInstruction& instruction);
void LiftVote(Emitter& to, const MachineInstruction& instruction);
void LiftShfl(Emitter& to, const MachineInstruction& instruction);
void LiftMatch(Emitter& to, const MachineInstruction& instruction);
void LiftWarpsync(Emitter& to, const MachineInstruction& instruction);
void LiftBar(Emitter& to, const MachineInstruction& instruction);
void LiftB2r(Emitter& to, const MachineInstruction& instruction);
void LiftNanosleep(Emitter& to, const MachineInstruction& instruction);

// lift_control.cc: branches, calls and the end of a thread
void LiftBra(Emitter& to, const MachineInstruction& instruction);
void LiftBrx(Emitter& to, const MachineInstruction& instruction);
void LiftExit(Emitter& to, const MachineInstruction& instruction);
void LiftCallRelative(Emitter& to, const MachineInstruction& instruction);
void LiftCallAbsolute(Emitter& to, const MachineInstruction& instruction);
void LiftRet(Emitter& to, const MachineInstruction& instruction);
void LiftLepc(Emitter& to, const MachineInstruction& instruction);
void LiftTrap(Emitter& to, const MachineInstruction& instruction);

}  // namespace torpor::sass
