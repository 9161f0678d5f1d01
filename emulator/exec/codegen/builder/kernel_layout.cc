#include "emulator/exec/codegen/builder/kernel_layout.h"

#include <algorithm>
#include <set>

namespace torpor::emulator {
namespace {

constexpr std::uint32_t kMaxSharedBytes = 1U << 28;

// Walks all functions and variables that a kernel may reach.
class Walker {
 public:
  Walker(const ptx::Module& module, KernelLayout& layout) : module_(module), layout_(layout) {
    // Any function may call a function with its address in a variable.
    for (const ptx::Variable& variable : module.variables) {
      for (const ptx::Relocation& relocation : variable.relocations) {
        if (relocation.is_function) global_pointers_.insert(relocation.symbol);
      }
    }
  }

  void Visit(std::uint32_t function) {
    if (!seen_.insert(function).second) return;
    layout_.functions.push_back(function);
    for (const ptx::Instruction& instruction : module_.functions[function].instructions) {
      for (const ptx::Operand& operand : instruction.operands) {
        VisitOperand(instruction, operand);
      }
      const bool indirect = instruction.opcode == ptx::Opcode::kCall &&
                            std::any_of(instruction.operands.begin(), instruction.operands.end(),
                                        [](const ptx::Operand& operand) {
                                          return operand.kind == ptx::Operand::Kind::kRegister;
                                        });
      layout_.dynamic_stack |= instruction.opcode == ptx::Opcode::kAlloca;
      if (!indirect) continue;
      for (const std::uint32_t pointed : global_pointers_) Take(pointed);
    }
  }

  void FindResumable(std::uint32_t kernel) {
    const auto has_product = [](const ptx::Instruction& instruction) {
      return instruction.opcode == ptx::Opcode::kMma || instruction.opcode == ptx::Opcode::kWmma;
    };
    const auto& instructions = module_.functions[kernel].instructions;
    layout_.resumable = layout_.functions.size() == 1 && !layout_.dynamic_stack &&
                        std::none_of(instructions.begin(), instructions.end(), has_product);
  }

  void LayOutVariables() {
    LayOutShared();
    LayOutLocals();
  }

 private:
  void LayOutShared() {
    std::uint32_t shared = 0;
    std::uint32_t dynamic_alignment = kDynamicSharedAlignment;
    for (const std::uint32_t index : shared_) {
      const ptx::Variable& variable = module_.variables[index];
      layout_.shared_alignment = std::max(layout_.shared_alignment, variable.align);
      if (IsDynamic(variable)) {
        dynamic_alignment = std::max(dynamic_alignment, variable.align);
        continue;
      }
      shared = AlignUp(shared, variable.align);
      layout_.shared_offsets[index] = shared;
      shared = static_cast<std::uint32_t>(
          std::min<std::uint64_t>(kMaxSharedBytes, shared + variable.bytes));
    }
    layout_.static_shared_bytes = shared;
    // All variables of dynamic shared memory lie at the same offset.
    layout_.dynamic_shared_offset = AlignUp(shared, dynamic_alignment);
    for (const std::uint32_t index : shared_) {
      if (!IsDynamic(module_.variables[index])) continue;
      layout_.shared_offsets[index] = layout_.dynamic_shared_offset;
    }
  }

  static bool IsDynamic(const ptx::Variable& variable) { return variable.bytes == 0; }

  static std::uint32_t AlignUp(std::uint32_t offset, std::uint32_t alignment) {
    return (offset + alignment - 1) / alignment * alignment;
  }

  void VisitOperand(const ptx::Instruction& instruction, const ptx::Operand& operand) {
    for (const ptx::Operand& element : operand.elements) VisitOperand(instruction, element);
    if (operand.kind == ptx::Operand::Kind::kFunction) {
      if (instruction.opcode == ptx::Opcode::kCall) {
        if (module_.functions[operand.symbol].has_body) Visit(operand.symbol);
      } else {
        Take(operand.symbol);
      }
      return;
    }
    if (operand.kind == ptx::Operand::Kind::kSpecial &&
        operand.special == ptx::SpecialRegister::kReservedSmem) {
      layout_.reserved_shared = true;
    }
    const bool names_variable =
        operand.kind == ptx::Operand::Kind::kSymbol || operand.kind == ptx::Operand::Kind::kAddress;
    if (!names_variable || operand.symbol == ptx::kNoIndex) return;
    const ptx::Variable& variable = module_.variables[operand.symbol];
    if (variable.space == ptx::Space::kShared) shared_.insert(operand.symbol);
    const bool takes_parameter = variable.space == ptx::Space::kParam &&
                                 operand.kind == ptx::Operand::Kind::kSymbol &&
                                 instruction.opcode != ptx::Opcode::kCall;
    if (!takes_parameter) return;
    const ptx::Function& owner = module_.functions[variable.function];
    if (!owner.is_kernel && owner.HasParameter(operand.symbol)) {
      spilled_parameters_.insert(operand.symbol);
    }
  }

  void Take(std::uint32_t function) {
    if (module_.functions[function].is_kernel || !module_.functions[function].has_body) return;
    if (std::find(layout_.address_taken.begin(), layout_.address_taken.end(), function) ==
        layout_.address_taken.end()) {
      layout_.address_taken.push_back(function);
    }
    Visit(function);
  }

  void LayOutLocals() {
    for (std::uint32_t i = 0; i < module_.variables.size(); ++i) {
      const ptx::Variable& variable = module_.variables[i];
      const bool spilled = spilled_parameters_.contains(i);
      if (variable.space != ptx::Space::kLocal && !spilled) continue;
      if (!seen_.contains(variable.function)) continue;
      std::uint32_t& bytes = layout_.local_bytes[variable.function];
      // Parameters are copied in words.
      const std::uint32_t align = spilled ? std::max(variable.align, 4U) : variable.align;
      bytes = (bytes + align - 1) / align * align;
      layout_.local_offsets[i] = bytes;
      constexpr std::uint64_t kMaxLocalBytes = std::uint64_t{512} << 10;
      bytes += static_cast<std::uint32_t>(std::min(variable.bytes, kMaxLocalBytes));
      if (spilled) bytes = (bytes + 3) / 4 * 4;
    }
    for (auto& [function, bytes] : layout_.local_bytes) bytes = (bytes + 15) / 16 * 16;
  }

  const ptx::Module& module_;
  KernelLayout& layout_;
  std::set<std::uint32_t> seen_;
  std::set<std::uint32_t> shared_;
  std::set<std::uint32_t> spilled_parameters_;  // of functions, whose address is taken
  std::set<std::uint32_t> global_pointers_;
};

}  // namespace

KernelLayout LayOutKernel(const ptx::Module& module, std::uint32_t kernel) {
  KernelLayout layout;
  Walker walker(module, layout);
  walker.Visit(kernel);
  walker.FindResumable(kernel);
  walker.LayOutVariables();
  return layout;
}

}  // namespace torpor::emulator
