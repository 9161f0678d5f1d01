#pragma once

#include <cstddef>
#include <cstdint>

// The first bytes of nvcc's fatbins, and the wrappers that represent fatbins in programs.
namespace torpor {

inline constexpr std::uint32_t kFatbinMagic = 0xBA55ED50;
// The header of a container; an empty container is only a header.
inline constexpr std::size_t kFatbinHeaderBytes = 16;

inline constexpr std::uint32_t kFatbinWrapperMagic = 0x466243B1;
// Versions of wrappers.
inline constexpr std::uint32_t kPlainWrapper = 1;
inline constexpr std::uint32_t kRelocatableWrapper = 2;

// The record that nvcc puts into .nvFatBinSegment and passes to cuModuleLoadData and
// __cudaRegisterFatBinary.
struct FatbinWrapper {
  std::uint32_t magic;
  std::uint32_t version;
  const void* data;  // a fatbin container; of relocatable device code, what is linked already
  const void* const* relocatable;  // kRelocatableWrapper: null-terminated fatbins to be linked
};
static_assert(sizeof(FatbinWrapper) == 24);

}  // namespace torpor
