#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "emulator/ptx/lexer.h"
#include "emulator/ptx/module.h"

namespace torpor::ptx {

// The parser behind Parse(). After the first error every token reads as the end of the text, so
// that all loops finish without checking for errors.
class ParserState {
 public:
  explicit ParserState(Module& module);

  void ParseModule();
  bool failed() const { return !error_.empty(); }
  const std::string& error() const { return error_; }

 private:
  // One { } of a function body; names of inner scopes hide names of outer scopes.
  struct Scope {
    std::unordered_map<std::string_view, std::uint32_t> registers;
    std::unordered_map<std::string_view, std::uint32_t> variables;
    std::unordered_map<std::string_view, std::uint32_t> labels;
    std::unordered_map<std::string_view, std::uint32_t> tables;
    std::unordered_map<std::string_view, std::uint32_t> ranges;  // "%r" of .reg %r<9> -> first
    std::unordered_map<std::string_view, std::uint32_t> range_sizes;
  };
  struct Declaration {
    Variable variable;
    bool is_array = false;
  };

  // Tokens.
  const Token& Peek() const { return token_; }
  Token Take();
  // Takes the part of a dotted word up to the next dot: ".reg.b32" is ".reg" and then ".b32".
  std::string_view TakeDirective();
  bool Accept(char punctuation);
  bool Accept(std::string_view word);
  void Expect(char punctuation);
  std::string_view ExpectWord();
  void Fail(const std::string& message);
  void SkipStatement();
  void SkipBraces();

  // Module level (parser.cc).
  void ParseDirective();
  void ParseLinkage();
  void ParseTarget();
  void ParseFunction(bool is_kernel, Linkage linkage);
  void ParseParameterList(std::uint32_t function, std::vector<std::uint32_t>& out);
  void ParseFunctionAttributes(Function& function);
  void LinkNames();
  void LinkOperand(Operand& operand);

  // Declarations (parse_variable.cc).
  std::uint32_t ParseVariable(Space space, std::uint32_t function, Linkage linkage);
  void ParseTypeOf(Variable& variable);
  void ParseArrayLength(Variable& variable, std::uint64_t& elements, bool& unsized);
  void ParseInitialiser(Variable& variable);
  void ParseInitialiserElement(Variable& variable);
  void ParseAddressElement(Variable& variable, std::string_view name, unsigned element);
  void AppendBits(Variable& variable, std::uint64_t bits, unsigned bytes);
  std::uint64_t ParseConstant();  // an integer constant expression
  struct Literal {
    bool is_float = false;
    std::uint64_t bits = 0;
  };
  std::optional<Literal> ParseNumber(std::string_view text) const;

  // Bodies (parse_body.cc).
  void ParseBody();
  void ParseStatement();
  void ParseBodyDirective(std::string_view word);
  void ParseRegisters();
  void ParseLabelledStatement(std::string_view name);
  void ParseBranchTargets(std::string_view name);
  void ParseInstruction();
  void ParseOperands(Instruction& instruction);
  Operand ParseOperand();
  Operand PairOperand(Operand first);
  Operand ParseAddress();
  Operand ParseVector(char open, char close);
  Operand ParseNumberOperand(bool negative);
  Operand NameOperand(std::string_view name);
  std::uint32_t FindRegister(std::string_view name) const;
  std::uint32_t LabelIndex(std::string_view name);
  void CloseScope();
  void BindLabels(const Scope& scope);

  Module& module_;
  Lexer lexer_;
  Token token_;
  std::string error_;
  std::uint32_t current_ = kNoIndex;  // function index
  std::vector<Scope> scopes_;
  // A label in use before its declaration. Each use gets an entry in Function::labels, bound when
  // the innermost scope that declares the name closes.
  struct PendingLabel {
    std::string_view name;
    std::uint32_t index;
    std::size_t depth;
  };
  std::vector<PendingLabel> pending_labels_;
  unsigned depth_ = 0;
};

}  // namespace torpor::ptx
