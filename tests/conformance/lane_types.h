#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <type_traits>

// The values that lanes compute with, as bits in 64-bit words.
namespace torpor::conformance {

using Word = std::uint64_t;

// IEEE 754 binary16 and bfloat16, one and two of them.
struct Half {
  std::uint16_t bits = 0;
};
struct Bfloat {
  std::uint16_t bits = 0;
};
struct Half2 {
  Half low;
  Half high;
};
struct Bfloat2 {
  Bfloat low;
  Bfloat high;
};

// The value in the low bits of a word, and back; the rest of the word is zero.
template <typename T>
T FromWord(Word word) {
  static_assert(std::is_trivially_copyable_v<T> && sizeof(T) <= sizeof(Word));
  T value;
  std::memcpy(static_cast<void*>(&value), &word, sizeof value);
  return value;
}

template <typename T>
Word ToWord(T value) {
  static_assert(std::is_trivially_copyable_v<T> && sizeof(T) <= sizeof(Word));
  Word word = 0;
  std::memcpy(&word, &value, sizeof value);
  return word;
}

// Exact.
double ToDouble(Half value);
double ToDouble(Bfloat value);

// Rounded to nearest, ties to even. `Wide` has room for the exact value: a result that was rounded
// before would be rounded twice.
using Wide = __float128;
Half ToHalf(Wide value);
Bfloat ToBfloat(Wide value);

}  // namespace torpor::conformance
