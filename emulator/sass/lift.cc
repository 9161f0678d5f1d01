#include "emulator/sass/lift.h"

#include <cstdio>
#include <utility>

#include "emulator/sass/emitter.h"
#include "emulator/sass/fuse.h"
#include "emulator/sass/naming.h"
#include "emulator/sass/opcodes.h"
#include "emulator/sass/subroutines.h"
#include "emulator/sass/waits.h"
#include "nvidia/machine_code/instruction.h"

namespace torpor::sass {
namespace {

std::string Hexadecimal(std::uint64_t number, int digits) {
  char text[32];
  (void)std::snprintf(text, sizeof(text), "0x%0*llx", digits,
                      static_cast<unsigned long long>(number));
  return text;
}

// Names the kernel, the instruction's offset and its bits, for bug reports.
Failure<LiftError> Unsupported(const CubinKernel& kernel, const MachineInstruction& instruction,
                               const std::string& what) {
  return {LiftError::kUnsupported, "kernel '" + std::string(kernel.name) + "': " + what + " at " +
                                       Hexadecimal(instruction.offset, 4) + " (" +
                                       Hexadecimal(instruction.high, 16) + " " +
                                       Hexadecimal(instruction.low, 16) + ")"};
}

}  // namespace

Result<std::string, LiftError> LiftKernel(const Cubin& cubin, const CubinKernel& kernel) {
  const Text& text = cubin.texts[kernel.text];
  const Subroutines subroutines = FindSubroutines(text, kernel);
  Emitter emitter(cubin, kernel, subroutines);
  for (std::size_t at = 0; at + kInstructionBytes <= text.code.size(); at += kInstructionBytes) {
    const MachineInstruction instruction = Decode(text.code.data() + at, at);
    const OpcodeEntry* entry = FindOpcode(instruction.opcode());
    if (entry == nullptr) {
      return Unsupported(kernel, instruction,
                         "machine instruction " + Hexadecimal(instruction.low & 0xfff, 3) +
                             ", which is not known,");
    }
    if (instruction.guard().never()) continue;
    emitter.Begin(instruction);
    entry->lift(emitter, instruction);
    emitter.Finish();
    if (emitter.failed()) {
      return Unsupported(kernel, instruction, std::string(entry->name) + " " + emitter.error());
    }
  }
  FuseHalves(emitter);
  MarkWaits(emitter.statements());
  return emitter.declarations() +
         NameAndPrint(emitter.prologue(), emitter.statements(), emitter.temporaries());
}

}  // namespace torpor::sass
