#include "emulator/ptx/thread_end.h"

#include <algorithm>
#include <vector>

namespace torpor::ptx {
namespace {

bool IsKnownFunction(const Operand& operand) { return operand.kind == Operand::Kind::kFunction; }

// Propagates "may end threads" from functions with `exit` to their callers.
class Marker {
 public:
  explicit Marker(Module& module) : module_(module), ends_(module.functions.size()) {}

  void Run() {
    for (std::size_t i = 0; i < ends_.size(); ++i) ends_[i] = HasExit(module_.functions[i]);
    while (MarkCalls()) {
    }
  }

 private:
  static bool HasExit(const Function& function) {
    return !function.is_kernel &&
           std::any_of(function.instructions.begin(), function.instructions.end(),
                       [](const Instruction& i) { return i.opcode == Opcode::kExit; });
  }

  bool MayEnd(const Instruction& call) const {
    const auto callee = std::find_if(call.operands.begin(), call.operands.end(), IsKnownFunction);
    if (callee != call.operands.end()) return ends_[callee->symbol];
    return std::find(ends_.begin(), ends_.end(), true) != ends_.end();
  }

  // Returns whether any call was newly marked.
  bool MarkCalls() {
    bool changed = false;
    for (std::size_t i = 0; i < ends_.size(); ++i) {
      Function& function = module_.functions[i];
      for (Instruction& instruction : function.instructions) {
        if (instruction.opcode != Opcode::kCall || instruction.ends_threads) continue;
        if (!MayEnd(instruction)) continue;
        instruction.ends_threads = changed = true;
        if (!function.is_kernel) ends_[i] = true;
      }
    }
    return changed;
  }

  Module& module_;
  std::vector<bool> ends_;  // functions
};

}  // namespace

void MarkCallsThatEndThreads(Module& module) { Marker(module).Run(); }

}  // namespace torpor::ptx
