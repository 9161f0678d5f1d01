#pragma once

#include <cstddef>
#include <cstdint>

// How nvcc's fatbins begin and what stands for them in programs.
namespace torpor {

inline constexpr std::uint32_t kFatbinMagic = 0xBA55ED50;
// Of a container; an empty one has no more.
inline constexpr std::size_t kFatbinHeaderBytes = 16;

inline constexpr std::uint32_t kFatbinWrapperMagic = 0x466243B1;
// Its versions.
inline constexpr std::uint32_t kPlainWrapper = 1;
inline constexpr std::uint32_t kRelocatableWrapper = 2;

// What nvcc puts into .nvFatBinSegment and hands to cuModuleLoadData and __cudaRegisterFatBinary.
struct FatbinWrapper {
  std::uint32_t magic;
  std::uint32_t version;
  const void* data;  // a fatbin container; of relocatable device code, what is linked already
  const void* const* relocatable;  // kRelocatableWrapper: null-terminated fatbins to be linked
};
static_assert(sizeof(FatbinWrapper) == 24);

}  // namespace torpor
