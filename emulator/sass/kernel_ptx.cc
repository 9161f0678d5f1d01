#include "emulator/sass/kernel_ptx.h"

#include <algorithm>
#include <utility>

namespace torpor::sass {
namespace {

// Values that the emulator's parser accepts; their choice has no effect.
constexpr std::string_view kVersion = "9.0";
constexpr std::string_view kAlignment = "16";

std::string ByteArray(std::string_view space, std::string_view name, const std::string& bytes) {
  return std::string(space) + " .align " + std::string(kAlignment) + " .b8 " + std::string(name) +
         "[" + bytes + "]";
}

// Declares all memories as external variables: the module that loads the cubin defines them.
std::string MemoryDeclarations(const Cubin& cubin) {
  std::string text;
  for (std::uint32_t i = 0; i < cubin.memories.size(); ++i) {
    const Memory& memory = cubin.memories[i];
    if (memory.bytes == 0) continue;
    const bool constant = memory.kind == Memory::Kind::kConstant;
    text +=
        ".extern " +
        ByteArray(constant ? ".const" : ".global", MemoryName(i), std::to_string(memory.bytes)) +
        ";\n";
  }
  return text;
}

// Declarations of the system functions that the emulator implements.
constexpr std::pair<std::string_view, std::string_view> kSystemDeclarations[] = {
    {"vprintf", "(.param .b32 r) vprintf(.param .b64 a, .param .b64 b)"},
    {"__assertfail",
     "__assertfail(.param .b64 a, .param .b64 b, .param .b32 c, .param .b64 d, .param .b64 e)"},
    {"malloc", "(.param .b64 r) malloc(.param .b64 a)"},
    {"free", "free(.param .b64 a)"},
};

// Declares the system functions that the cubin uses.
std::string FunctionDeclarations(const Cubin& cubin) {
  std::string text;
  for (const auto& [name, declaration] : kSystemDeclarations) {
    if (std::ranges::find(cubin.externals, name) == cubin.externals.end()) continue;
    text += ".extern .func " + std::string(declaration) + ";\n";
  }
  return text;
}

std::string SharedDeclaration(const CubinKernel& kernel) {
  // Dynamic memory follows static memory, or begins at 0 without static memory.
  if (kernel.shared_bytes == 0) return ".extern " + ByteArray(".shared", kSharedName, "") + ";\n";
  return ByteArray(".shared", kSharedName, std::to_string(kernel.shared_bytes)) + ";\n";
}

std::string Parameters(const CubinKernel& kernel) {
  if (kernel.parameter_bytes == 0) return {};
  return ByteArray(".param", kParametersName, std::to_string(kernel.parameter_bytes));
}

}  // namespace

std::string MemoryName(std::uint32_t memory) { return "$memory" + std::to_string(memory); }

// Assembles head, body and closing brace.
std::string KernelPtx(const Cubin& cubin, const CubinKernel& kernel, std::string_view body) {
  std::string text = ".version " + std::string(kVersion) + "\n.target sm_" +
                     std::to_string(cubin.architecture) + "\n.address_size 64\n";
  text += FunctionDeclarations(cubin) + MemoryDeclarations(cubin) + SharedDeclaration(kernel);
  text += ".visible .entry " + std::string(kernel.name) + "(" + Parameters(kernel) + ")\n";
  if (kernel.max_threads != 0) text += ".maxntid " + std::to_string(kernel.max_threads) + "\n";
  text += "{\n";
  return text.append(body) + "}\n";
}

}  // namespace torpor::sass
