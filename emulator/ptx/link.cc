#include "emulator/ptx/link.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <utility>

#include "emulator/ptx/thread_end.h"

namespace torpor::ptx {
namespace {

// extern __shared__ T name[]: the dynamic shared memory of a launch.
bool IsDynamicShared(const Variable& variable) {
  return variable.linkage == Linkage::kExternal && variable.space == Space::kShared &&
         variable.bytes == 0;
}

bool IsModuleLevel(const Variable& variable) { return variable.function == kNoIndex; }

// The symbol's role in the choice of its name's definition; kExternal means no part.
Linkage RoleOf(const Variable& variable) {
  return IsDynamicShared(variable) ? Linkage::kCommon : variable.linkage;
}
Linkage RoleOf(const Function& function) {
  return function.has_body ? function.linkage : Linkage::kExternal;
}

// Links the parts: chooses a definition for each name, numbers the kept symbols, then moves the
// parts into the result with all indices renumbered.
class Linker {
 public:
  Linker(std::vector<LinkPart> parts, bool (*is_system_function)(std::string_view))
      : parts_(std::move(parts)), is_system_function_(is_system_function) {
    for (const LinkPart& part : parts_) {
      variables_.emplace_back(part.module.variables.size());
      functions_.emplace_back(part.module.functions.size());
    }
  }

  Result<Module, LinkError> Run() {
    ChooseDefinitions();
    if (!duplicates_.empty()) return Failed(LinkError::kDuplicate, duplicates_);
    NumberFunctions();
    NumberVariables();
    for (part_ = 0; part_ < parts_.size(); ++part_) MovePart();
    if (!undefined_.empty()) return Failed(LinkError::kUndefined, undefined_);
    return std::move(linked_);
  }

 private:
  // The definition that was chosen for a name so far.
  struct Definition {
    std::size_t part = 0;
    std::uint32_t index = kNoIndex;  // in its part
    Linkage role = Linkage::kExternal;
    std::uint64_t bytes = 0;
    std::uint32_t align = 1;  // the largest of all common definitions
  };
  using Definitions = std::map<std::string_view, Definition>;

  // The place of a part's symbol in the linked module.
  struct Place {
    bool is_kept = false;            // else another takes its place
    std::uint32_t index = kNoIndex;  // in the linked module; kNoIndex: undefined or gone
  };
  using Places = std::vector<std::vector<Place>>;  // by part and index

  // Joins the messages in alphabetical order.
  static Failure<LinkError> Failed(LinkError error, const std::set<std::string>& messages) {
    std::string all;
    for (const std::string& message : messages) all += (all.empty() ? "" : "; ") + message;
    return {error, all};
  }

  void ChooseDefinitions() {
    for (std::size_t part = 0; part < parts_.size(); ++part) {
      const Module& module = parts_[part].module;
      for (std::uint32_t i = 0; i < module.functions.size(); ++i) {
        const Function& function = module.functions[i];
        Offer(definitions_of_functions_, function.name, {part, i, RoleOf(function), 0, 1});
      }
      for (std::uint32_t i = 0; i < module.variables.size(); ++i) {
        const Variable& variable = module.variables[i];
        if (!IsModuleLevel(variable)) continue;
        Offer(definitions_of_variables_, variable.name,
              {part, i, RoleOf(variable), variable.bytes, variable.align});
      }
    }
  }

  // Replaces the chosen definition if the offered definition has priority by the rules of Link. Two
  // .visible definitions are an error; common definitions keep the largest alignment.
  void Offer(Definitions& definitions, std::string_view name, const Definition& offered) {
    if (offered.role == Linkage::kLocal || offered.role == Linkage::kExternal) return;
    const auto [entry, is_first] = definitions.emplace(name, offered);
    if (is_first) return;
    Definition& chosen = entry->second;
    const bool both_common = chosen.role == Linkage::kCommon && offered.role == Linkage::kCommon;
    const std::uint32_t align = both_common ? std::max(chosen.align, offered.align) : offered.align;
    if (chosen.role == Linkage::kVisible && offered.role == Linkage::kVisible) {
      duplicates_.insert("multiple definition of '" + std::string(name) + "' in " +
                         parts_[offered.part].name + ", first defined in " +
                         parts_[chosen.part].name);
    } else if ((offered.role == Linkage::kVisible) ||
               (both_common && offered.bytes > chosen.bytes)) {
      chosen = offered;
    }
    if (both_common) chosen.align = align;
  }

  // Numbers the kept functions first. The others then get the numbers of their replacements.
  void NumberFunctions() {
    std::map<std::string_view, std::uint32_t> declared;  // functions of the system
    std::uint32_t next = 0;
    ForEach(&Module::functions, [&](std::size_t part, std::uint32_t i, const Function& function) {
      const bool is_kept =
          IsKept(definitions_of_functions_, function, part, i) ||
          (!definitions_of_functions_.contains(function.name) &&
           RoleOf(function) == Linkage::kExternal && is_system_function_(function.name) &&
           declared.emplace(function.name, next).second);
      if (is_kept) functions_[part][i] = {true, next++};
    });
    ForEach(&Module::functions, [&](std::size_t part, std::uint32_t i, const Function& function) {
      Place& place = functions_[part][i];
      if (place.is_kept) return;
      const auto found = declared.find(function.name);
      place.index = found != declared.end()
                        ? found->second
                        : Chosen(definitions_of_functions_, functions_, function.name);
    });
  }

  // Numbers the variables: module-level variables by their definitions, others with their
  // functions.
  void NumberVariables() {
    std::uint32_t next = 0;
    ForEach(&Module::variables, [&](std::size_t part, std::uint32_t i, const Variable& variable) {
      const bool is_kept = IsModuleLevel(variable)
                               ? IsKept(definitions_of_variables_, variable, part, i)
                               : functions_[part][variable.function].is_kept;
      if (is_kept) variables_[part][i] = {true, next++};
    });
    ForEach(&Module::variables, [&](std::size_t part, std::uint32_t i, const Variable& variable) {
      Place& place = variables_[part][i];
      if (place.is_kept || !IsModuleLevel(variable)) return;
      place.index = Chosen(definitions_of_variables_, variables_, variable.name);
    });
  }

  // Calls visit(part, index, symbol) for all symbols of a kind.
  template <typename Symbol, typename Visit>
  void ForEach(std::vector<Symbol> Module::*symbols, const Visit& visit) const {
    for (std::size_t part = 0; part < parts_.size(); ++part) {
      const std::vector<Symbol>& all = parts_[part].module.*symbols;
      for (std::uint32_t i = 0; i < all.size(); ++i) visit(part, i, all[i]);
    }
  }

  // Whether the symbol itself becomes part of the result, rather than a replacement.
  template <typename Symbol>
  static bool IsKept(const Definitions& definitions, const Symbol& symbol, std::size_t part,
                     std::uint32_t index) {
    const Linkage role = RoleOf(symbol);
    if (role == Linkage::kLocal) return true;
    if (role == Linkage::kExternal) return false;
    const Definition& chosen = definitions.at(symbol.name);
    return chosen.part == part && chosen.index == index;
  }

  // Returns the index, in the result, of the definition of `name`; kNoIndex if undefined.
  static std::uint32_t Chosen(const Definitions& definitions, const Places& places,
                              std::string_view name) {
    const auto found = definitions.find(name);
    if (found == definitions.end()) return kNoIndex;
    return places[found->second.part][found->second.index].index;
  }

  void MovePart() {
    Module& module = parts_[part_].module;
    linked_.target = std::max(linked_.target, module.target);
    std::move(module.texts.begin(), module.texts.end(), std::back_inserter(linked_.texts));
    for (std::uint32_t i = 0; i < module.variables.size(); ++i) {
      if (variables_[part_][i].is_kept) MoveVariable(module.variables[i]);
    }
    for (std::uint32_t i = 0; i < module.functions.size(); ++i) {
      if (functions_[part_][i].is_kept) MoveFunction(module.functions[i]);
    }
  }

  void MoveVariable(Variable& variable) {
    if (IsModuleLevel(variable)) {
      if (RoleOf(variable) == Linkage::kCommon) {
        variable.align = definitions_of_variables_.at(variable.name).align;
      }
    } else {
      variable.function = functions_[part_][variable.function].index;
    }
    for (Relocation& relocation : variable.relocations) {
      if (relocation.symbol == kNoIndex) continue;
      relocation.symbol = relocation.is_function ? PlaceOfFunction(relocation.symbol)
                                                 : PlaceOfVariable(relocation.symbol);
    }
    linked_.variables.push_back(std::move(variable));
  }

  void MoveFunction(Function& function) {
    for (auto* list : {&function.parameters, &function.results}) {
      for (std::uint32_t& variable : *list) variable = variables_[part_][variable].index;
    }
    for (Instruction& instruction : function.instructions) {
      for (Operand& operand : instruction.operands) MoveOperand(operand);
    }
    linked_.functions.push_back(std::move(function));
  }

  // Renumbers the symbols in an operand.
  void MoveOperand(Operand& operand) {
    for (Operand& element : operand.elements) MoveOperand(element);
    const bool names_variable =
        operand.kind == Operand::Kind::kSymbol || operand.kind == Operand::Kind::kAddress;
    if (operand.symbol == kNoIndex) return;
    if (names_variable) operand.symbol = PlaceOfVariable(operand.symbol);
    if (operand.kind == Operand::Kind::kFunction) operand.symbol = PlaceOfFunction(operand.symbol);
  }

  std::uint32_t PlaceOfVariable(std::uint32_t index) {
    const std::uint32_t place = variables_[part_][index].index;
    if (place == kNoIndex) Miss(parts_[part_].module.variables[index].name);
    return place;
  }

  std::uint32_t PlaceOfFunction(std::uint32_t index) {
    const std::uint32_t place = functions_[part_][index].index;
    if (place == kNoIndex) Miss(parts_[part_].module.functions[index].name);
    return place;
  }

  // Records an undefined name, for the message of the failure.
  void Miss(std::string_view name) {
    undefined_.insert("undefined reference to '" + std::string(name) + "' in " +
                      parts_[part_].name);
  }

  std::vector<LinkPart> parts_;
  bool (*const is_system_function_)(std::string_view);
  Definitions definitions_of_functions_;
  Definitions definitions_of_variables_;
  Places variables_;
  Places functions_;
  std::set<std::string> duplicates_;
  std::set<std::string> undefined_;
  std::size_t part_ = 0;  // that is being moved
  Module linked_;
};

}  // namespace

Result<Module, LinkError> Link(std::vector<LinkPart> parts,
                               bool (*is_system_function)(std::string_view name)) {
  auto linked = Linker(std::move(parts), is_system_function).Run();
  // Parse could not know the calls between parts.
  if (linked) MarkCallsThatEndThreads(*linked);
  return linked;
}

}  // namespace torpor::ptx
