#include "emulator/sass/cubin.h"

#include <algorithm>
#include <bit>
#include <map>
#include <optional>
#include <utility>

#include "base/units.h"
#include "nvidia/elf_file.h"
#include "nvidia/machine_code/nv_info.h"

namespace torpor::sass {
namespace {

// Limits beyond any device: a file that asks for more is damaged.
constexpr std::uint64_t kMaxMemoryBytes = std::uint64_t{1} << 40;
constexpr std::uint64_t kMaxSharedBytes = 256 * kKiB;
constexpr std::uint64_t kMaxLocalBytes = 512 * kKiB;
constexpr std::uint32_t kMaxParameterBytes = 32764;
constexpr std::uint64_t kMaxBankBytes = 64 * kKiB;
constexpr std::uint32_t kMaxAlignment = 4096;

constexpr std::uint64_t kCodeBegin = 0x1000;
constexpr std::uint64_t kCodeAlignment = 128;

Failure<CubinError> Malformed(const std::string& what) {
  return {CubinError::kMalformed, "malformed cubin: " + what};
}

Failure<CubinError> Unsupported(const std::string& what) {
  return {CubinError::kUnsupported, "a cubin that the emulator cannot run: " + what};
}

// Reads a cubin in passes: header, sections, symbols, sections of kernels, relocations. Every count
// and offset is checked, and `Spend` bounds the work on a hostile file by its size.
class CubinReader {
 public:
  CubinReader(const ElfFile& file, std::span<const std::byte> bytes) : file_(file), bytes_(bytes) {}

  CubinResult<Cubin> Read();

 private:
  using Index = std::uint32_t;  // of a section

  CubinResult<void> ReadHeader();
  CubinResult<void> ReadSections();
  CubinResult<void> AddText(Index section, std::string_view name);
  CubinResult<void> AddMemory(Index section, std::string_view name);
  CubinResult<void> ReadSymbols();
  CubinResult<void> AddFunction(Index index, const Elf64_Sym& symbol, std::string_view name);
  CubinResult<void> AddVariable(const Elf64_Sym& symbol, std::string_view name);
  CubinResult<void> ReadKernelSections();
  CubinResult<void> ReadShared(CubinKernel& kernel, const Elf64_Shdr& section);
  CubinResult<void> ReadBank2(CubinKernel& kernel, const Elf64_Shdr& section);
  CubinResult<void> ReadInfo(CubinKernel* kernel, const Elf64_Shdr& section);
  CubinResult<void> TakeInfo(CubinKernel& kernel, const NvInfo& info);
  CubinResult<void> TakeFunctionInfo(const NvInfo& info);
  CubinResult<void> TakeParameter(CubinKernel& kernel, const NvInfo& info);
  CubinResult<void> TakeBranches(CubinKernel& kernel, const NvInfo& info);
  CubinResult<void> ReadRelocations();
  CubinResult<void> ReadRelocationsOf(const Elf64_Shdr& section, std::uint64_t place_bytes,
                                      std::vector<CubinRelocation>& relocations);
  CubinResult<CubinRelocation> TargetOf(const Elf64_Rela& entry);
  CubinResult<void> FinishKernels();

  CubinKernel* KernelOfSection(Index text_section);

  const ElfFile& file_;
  const std::span<const std::byte> bytes_;
  Cubin cubin_;
  const Elf64_Shdr* symbols_ = nullptr;
  const Elf64_Shdr* names_ = nullptr;
  std::map<Index, std::uint32_t> text_of_;       // section -> Cubin::texts
  std::map<Index, std::uint32_t> memory_of_;     // section -> Cubin::memories
  std::map<Index, std::uint32_t> kernel_of_;     // section of its text -> Cubin::kernels
  std::map<Index, std::uint32_t> entry_symbol_;  // symbol -> Cubin::kernels
  std::map<Index, std::uint32_t> external_of_;   // symbol -> Cubin::externals
  std::uint64_t next_code_ = kCodeBegin;
  // Takes so many of bytes_left_. False if there are not so many.
  bool Spend(std::uint64_t bytes);

  // Budget for reading sections: honest files have them side by side, while each section of a
  // hostile file may span the whole file.
  std::uint64_t bytes_left_ = 0;
};

// The passes rely on results of earlier passes, so their order matters.
CubinResult<Cubin> CubinReader::Read() {
  bytes_left_ = 2 * bytes_.size();
  if (auto read = ReadHeader(); !read) return read.failure();
  if (auto read = ReadSections(); !read) return read.failure();
  if (auto read = ReadSymbols(); !read) return read.failure();
  if (auto read = ReadKernelSections(); !read) return read.failure();
  if (auto read = ReadRelocations(); !read) return read.failure();
  if (auto finished = FinishKernels(); !finished) return finished.failure();
  return std::move(cubin_);
}

bool CubinReader::Spend(std::uint64_t bytes) {
  if (bytes > bytes_left_) return false;
  bytes_left_ -= bytes;
  return true;
}

CubinResult<void> CubinReader::ReadHeader() {
  const CubinHeader header = ReadCubinHeader(bytes_);
  if (!header.is_cuda) return Malformed("code for another machine");
  if (!header.has_known_abi) return Unsupported("its form is not known");
  cubin_.architecture = header.architecture;
  if (!header.is_linked) return Unsupported("it is not linked");
  return {};
}

// Finds the symbol table, and adds texts and memories.
CubinResult<void> CubinReader::ReadSections() {
  constexpr std::string_view kText = ".text.";
  for (Index i = 0; i < file_.sections().size(); ++i) {
    const Elf64_Shdr& section = file_.sections()[i];
    const std::string_view name = file_.NameOf(section);
    CubinResult<void> added;
    if (section.sh_type == SHT_SYMTAB && symbols_ == nullptr) {
      symbols_ = &section;
      names_ = file_.Section(section.sh_link);
    } else if (name.starts_with(kText)) {
      added = AddText(i, name.substr(kText.size()));
    } else if (name == ".nv.global" || name == ".nv.global.init" || name == ".nv.constant3" ||
               name == ".nv.constant4") {
      added = AddMemory(i, name);
    }
    if (!added) return added;
  }
  if (symbols_ == nullptr || names_ == nullptr) return Malformed("no symbols");
  return {};
}

// Adds a section of code at the next free code address.
CubinResult<void> CubinReader::AddText(Index section, std::string_view name) {
  const auto code = file_.Content(file_.sections()[section]);
  if (!code || code->empty() || code->size() % kInstructionBytes != 0) {
    return Malformed("code of " + std::string(name));
  }
  text_of_[section] = static_cast<std::uint32_t>(cubin_.texts.size());
  Text& text = cubin_.texts.emplace_back();
  text.name = name;
  text.code = *code;
  text.code_address = next_code_;
  next_code_ += RoundUp(code->size(), kCodeAlignment);
  return {};
}

// Adds a section of variables or a constant bank. A section without content is zero.
CubinResult<void> CubinReader::AddMemory(Index section, std::string_view name) {
  constexpr std::string_view kConstant = ".nv.constant";
  const Elf64_Shdr& header = file_.sections()[section];
  const bool is_constant = name.starts_with(kConstant);
  const auto content = file_.Content(header);
  const auto align = std::max<std::uint64_t>(header.sh_addralign, 1);
  if (!content || header.sh_size > (is_constant ? kMaxBankBytes : kMaxMemoryBytes) ||
      !std::has_single_bit(align) || align > kMaxAlignment || !Spend(content->size())) {
    return Malformed("section " + std::string(name));
  }
  memory_of_[section] = static_cast<std::uint32_t>(cubin_.memories.size());
  Memory& memory = cubin_.memories.emplace_back();
  memory.section = name;
  memory.bytes = header.sh_size;
  memory.align = static_cast<std::uint32_t>(align);
  memory.initial = *content;
  if (is_constant) {
    memory.kind = Memory::Kind::kConstant;
    memory.bank = static_cast<std::uint32_t>(name[kConstant.size()] - '0');
  }
  return {};
}

// Adds functions and variables. Other symbols, of sections for example, have no use here.
CubinResult<void> CubinReader::ReadSymbols() {
  Elf64_Sym symbol;
  for (Index i = 0; file_.Read(*symbols_, i, symbol); ++i) {
    const std::string_view name =
        file_.TextAt(*names_, symbol.st_name, ElfFile::kMaxSectionName * 16);
    CubinResult<void> added;
    switch (ELF64_ST_TYPE(symbol.st_info)) {
      case STT_FUNC:
        added = AddFunction(i, symbol, name);
        break;
      case STT_OBJECT:
        added = AddVariable(symbol, name);
        break;
      default:
        break;
    }
    if (!added) return added;
  }
  for (Text& text : cubin_.texts) {
    std::ranges::sort(text.functions, {},
                      [](const CubinFunction& function) { return function.offset; });
  }
  return {};
}

// Adds a function. An undefined symbol is a system function; kEntrySymbol marks kernels.
CubinResult<void> CubinReader::AddFunction(Index index, const Elf64_Sym& symbol,
                                           std::string_view name) {
  if (symbol.st_shndx == SHN_UNDEF) {
    external_of_[index] = static_cast<std::uint32_t>(cubin_.externals.size());
    cubin_.externals.push_back(name);
    return {};
  }
  const auto found = text_of_.find(symbol.st_shndx);
  if (found == text_of_.end()) return Malformed("function " + std::string(name) + " has no code");
  Text& text = cubin_.texts[found->second];
  if (symbol.st_value % kInstructionBytes != 0 || symbol.st_value >= text.code.size() ||
      symbol.st_size > text.code.size() - symbol.st_value) {
    return Malformed("function " + std::string(name) + " beyond its code");
  }
  text.functions.push_back({name, symbol.st_value, symbol.st_size});
  if ((symbol.st_other & kEntrySymbol) == 0) return {};
  const auto kernel = static_cast<std::uint32_t>(cubin_.kernels.size());
  if (!kernel_of_.emplace(symbol.st_shndx, kernel).second) {
    return Malformed("two kernels in one section");
  }
  entry_symbol_[index] = kernel;
  CubinKernel& added = cubin_.kernels.emplace_back();
  added.name = name;
  added.text = found->second;
  added.offset = symbol.st_value;
  return {};
}

// Adds a variable of a known section.
CubinResult<void> CubinReader::AddVariable(const Elf64_Sym& symbol, std::string_view name) {
  const auto found = memory_of_.find(symbol.st_shndx);
  if (found == memory_of_.end()) return {};
  const std::uint64_t bytes = cubin_.memories[found->second].bytes;
  if (symbol.st_value > bytes || symbol.st_size > bytes - symbol.st_value) {
    return Malformed("variable " + std::string(name) + " beyond its section");
  }
  // A dollar begins the compiler's own.
  if (name.empty() || name.starts_with('$')) return {};
  cubin_.variables.push_back({name, found->second, symbol.st_value, symbol.st_size});
  return {};
}

CubinKernel* CubinReader::KernelOfSection(Index text_section) {
  const auto found = kernel_of_.find(text_section);
  return found == kernel_of_.end() ? nullptr : &cubin_.kernels[found->second];
}

// Reads the sections that belong to kernels: attributes, shared memory, and constant banks.
CubinResult<void> CubinReader::ReadKernelSections() {
  for (const Elf64_Shdr& section : file_.sections()) {
    const std::string_view name = file_.NameOf(section);
    CubinKernel* const kernel = KernelOfSection(section.sh_info);
    CubinResult<void> read;
    if (section.sh_type == kInfoSection) {
      read = ReadInfo(name == ".nv.info" ? nullptr : kernel, section);
    } else if (kernel == nullptr) {
      continue;
    } else if (name.starts_with(".nv.shared.")) {
      read = ReadShared(*kernel, section);
    } else if (name.starts_with(".nv.constant0.") && kernel->parameter_base == 0) {
      // A kernel without parameters tells only here where they would begin.
      kernel->parameter_base = static_cast<std::uint32_t>(std::min(section.sh_size, kMaxBankBytes));
    } else if (name.starts_with(".nv.constant2.")) {
      read = ReadBank2(*kernel, section);
    }
    if (!read) return read;
  }
  return {};
}

// The section has no content: its size is the static shared memory.
CubinResult<void> CubinReader::ReadShared(CubinKernel& kernel, const Elf64_Shdr& section) {
  if (section.sh_size > kMaxSharedBytes) {
    return Malformed("shared memory of " + std::string(kernel.name));
  }
  kernel.shared_bytes = section.sh_size;
  return {};
}

CubinResult<void> CubinReader::ReadBank2(CubinKernel& kernel, const Elf64_Shdr& section) {
  const auto content = file_.Content(section);
  if (!content || content->size() > kMaxBankBytes)
    return Malformed("constants of " + std::string(kernel.name));
  kernel.bank2 = *content;
  return {};
}

// `kernel` is null for attributes of all functions, and for a subroutine's own section.
CubinResult<void> CubinReader::ReadInfo(CubinKernel* kernel, const Elf64_Shdr& section) {
  const auto content = file_.Content(section);
  if (!content || !Spend(content->size())) return Malformed("section .nv.info");
  NvInfoReader reader(*content);
  while (const auto info = reader.Next()) {
    auto taken = kernel == nullptr ? TakeFunctionInfo(*info) : TakeInfo(*kernel, *info);
    if (!taken) return taken;
  }
  if (reader.is_malformed()) return Malformed("section .nv.info");
  return {};
}

// Takes an attribute that names its function by symbol, from the section of the whole file.
CubinResult<void> CubinReader::TakeFunctionInfo(const NvInfo& info) {
  const auto symbol = info.Word(0);
  const auto value = info.Word(1);
  if (!symbol || !value) return {};
  const auto found = entry_symbol_.find(*symbol);
  if (found == entry_symbol_.end()) return {};
  CubinKernel& kernel = cubin_.kernels[found->second];
  if (info.attribute == NvAttribute::kRegisters) kernel.registers = *value;
  // The stack size, where known, includes the frame and the frames of called functions.
  if (info.attribute == NvAttribute::kFrameBytes || info.attribute == NvAttribute::kStackBytes) {
    kernel.local_bytes = std::max<std::uint64_t>(kernel.local_bytes, *value);
  }
  return {};
}

// Takes an attribute from a kernel's own section.
CubinResult<void> CubinReader::TakeInfo(CubinKernel& kernel, const NvInfo& info) {
  switch (info.attribute) {
    case NvAttribute::kMaxThreads:
    case NvAttribute::kRequiredThreads: {
      std::uint64_t threads = 1;
      for (std::size_t i = 0; i < 3; ++i) threads *= std::min(info.Word(i).value_or(1), 0xffffU);
      kernel.max_threads = static_cast<std::uint32_t>(std::min<std::uint64_t>(threads, 0xffffffff));
      return {};
    }
    case NvAttribute::kParameterBank:
      kernel.parameter_base = info.Word(1).value_or(0) & 0xffff;
      return {};
    case NvAttribute::kParameterBytes:
      kernel.parameter_bytes = info.value;
      return {};
    case NvAttribute::kParameter:
    case NvAttribute::kLargeParameter:
      return TakeParameter(kernel, info);
    case NvAttribute::kBranchTargets:
      return TakeBranches(kernel, info);
    default:
      return {};
  }
}

// Parameters come in any order; the ordinal tells which parameter an attribute describes.
CubinResult<void> CubinReader::TakeParameter(CubinKernel& kernel, const NvInfo& info) {
  constexpr std::uint32_t kSizeShift = 18;  // of a small one
  const auto place = info.Word(1);
  const auto size = info.Word(2);
  if (!place || !size) return Malformed("parameters of " + std::string(kernel.name));
  const std::uint32_t ordinal = *place & 0xffff;
  if (kernel.parameters.size() <= ordinal) {
    const std::size_t more = ordinal + 1 - kernel.parameters.size();
    if (ordinal >= kMaxParameterBytes || !Spend(more * sizeof kernel.parameters[0])) {
      return Malformed("parameters of " + std::string(kernel.name));
    }
    kernel.parameters.resize(ordinal + 1);
  }
  const bool large = info.attribute == NvAttribute::kLargeParameter;
  kernel.parameters[ordinal] = {*place >> 16, large ? *size : *size >> kSizeShift};
  return {};
}

CubinResult<void> CubinReader::TakeBranches(CubinKernel& kernel, const NvInfo& info) {
  // Records of an instruction, an unknown word, the number of targets, and the targets.
  constexpr std::size_t kHeadWords = 3;
  const std::size_t words = info.content.size() / sizeof(std::uint32_t);
  for (std::size_t at = 0; at + kHeadWords <= words;) {
    IndirectBranch& branch = kernel.branches.emplace_back();
    branch.offset = *info.Word(at);
    const std::uint64_t count = *info.Word(at + 2);
    at += kHeadWords;
    if (count > words - at) return Malformed("branches of " + std::string(kernel.name));
    branch.targets.reserve(count);
    for (std::size_t end = at + count; at < end; ++at) branch.targets.push_back(*info.Word(at));
  }
  return {};
}

// Reads the relocations of texts and memories; others, of debug sections for example, are skipped.
CubinResult<void> CubinReader::ReadRelocations() {
  for (const Elf64_Shdr& section : file_.sections()) {
    if (section.sh_type != SHT_REL && section.sh_type != SHT_RELA) continue;
    CubinResult<void> read;
    if (const auto text = text_of_.find(section.sh_info); text != text_of_.end()) {
      Text& place = cubin_.texts[text->second];
      read = ReadRelocationsOf(section, place.code.size(), place.relocations);
    } else if (const auto found = memory_of_.find(section.sh_info); found != memory_of_.end()) {
      Memory& place = cubin_.memories[found->second];
      read = ReadRelocationsOf(section, place.initial.size(), place.relocations);
    }
    if (!read) return read;
  }
  const auto by_offset = [](const CubinRelocation& relocation) { return relocation.offset; };
  for (Text& text : cubin_.texts) std::ranges::stable_sort(text.relocations, {}, by_offset);
  for (Memory& memory : cubin_.memories) {
    std::ranges::stable_sort(memory.relocations, {}, by_offset);
  }
  return {};
}

// `place_bytes` is the size of the section that the relocations change.
CubinResult<void> CubinReader::ReadRelocationsOf(const Elf64_Shdr& section,
                                                 std::uint64_t place_bytes,
                                                 std::vector<CubinRelocation>& relocations) {
  if (!Spend(section.sh_size)) return Malformed("relocations");
  const std::uint64_t count = RelocationCount(section);
  relocations.reserve(relocations.size() + count);
  for (std::uint64_t i = 0; i < count; ++i) {
    const auto entry = ReadRelocation(file_, section, i);
    if (!entry) return Malformed("relocations");
    // An instruction's word pair, or an address.
    constexpr std::uint64_t kWidest = 8;
    if (entry->r_offset > place_bytes || place_bytes - entry->r_offset < kWidest) {
      return Malformed("a relocation beyond its section");
    }
    auto target = TargetOf(*entry);
    if (!target) return target.failure();
    relocations.push_back(*target);
  }
  return {};
}

// Resolves a relocation's symbol to a system function, a text or a memory.
CubinResult<CubinRelocation> CubinReader::TargetOf(const Elf64_Rela& entry) {
  const std::uint32_t type = ELF64_R_TYPE(entry.r_info);
  if (!IsKnownRelocation(type)) return Unsupported("relocation of type " + std::to_string(type));
  const auto index = static_cast<Index>(ELF64_R_SYM(entry.r_info));
  Elf64_Sym symbol;
  if (!file_.Read(*symbols_, index, symbol)) return Malformed("a relocation without a symbol");
  CubinRelocation relocation;
  relocation.offset = entry.r_offset;
  relocation.type = static_cast<RelocationType>(type);
  relocation.addend = symbol.st_value + static_cast<std::uint64_t>(entry.r_addend);
  if (const auto external = external_of_.find(index); external != external_of_.end()) {
    relocation.external = external->second;
  } else if (const auto text = text_of_.find(symbol.st_shndx); text != text_of_.end()) {
    relocation.text = text->second;
  } else if (const auto memory = memory_of_.find(symbol.st_shndx); memory != memory_of_.end()) {
    relocation.memory = memory->second;
  } else {
    return Unsupported("a relocation to '" +
                       std::string(file_.TextAt(*names_, symbol.st_name, 1024)) +
                       "', which is not in it");
  }
  return relocation;
}

// Checks limits, which need all attributes of a kernel.
CubinResult<void> CubinReader::FinishKernels() {
  constexpr std::uint32_t kWidestRead = 8;
  for (CubinKernel& kernel : cubin_.kernels) {
    const auto inside = [&](const Parameter& parameter) {
      return parameter.offset <= kernel.parameter_bytes &&
             parameter.bytes <= kernel.parameter_bytes - parameter.offset;
    };
    if (kernel.parameter_bytes > kMaxParameterBytes ||
        !std::ranges::all_of(kernel.parameters, inside)) {
      return Malformed("parameters of " + std::string(kernel.name));
    }
    if (kernel.local_bytes > kMaxLocalBytes) {
      return Malformed("local memory of " + std::string(kernel.name));
    }
    kernel.parameter_bytes =
        static_cast<std::uint32_t>(RoundUp(kernel.parameter_bytes, kWidestRead));
  }
  return {};
}

}  // namespace

const CubinKernel* Cubin::FindKernel(std::string_view name) const {
  const auto found = std::ranges::find(kernels, name, &CubinKernel::name);
  return found == kernels.end() ? nullptr : &*found;
}

const Memory* Cubin::Bank(std::uint32_t bank) const {
  const auto found = std::ranges::find_if(memories, [&](const Memory& memory) {
    return memory.kind == Memory::Kind::kConstant && memory.bank == bank;
  });
  return found == memories.end() ? nullptr : &*found;
}

CubinResult<Cubin> ReadCubin(std::span<const std::byte> bytes) {
  const std::optional<ElfFile> file = ElfFile::Open(bytes);
  if (!file) return Malformed("not a 64-bit ELF file");
  return CubinReader(*file, bytes).Read();
}

}  // namespace torpor::sass
