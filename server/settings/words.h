#pragma once

#include <array>
#include <functional>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>

namespace torpor::server {

// A value of an enum and its word in files, flags and messages.
template <typename Enum>
struct Word {
  Enum value;
  std::string_view word;
};

// All words of `Enum`, in the order in which messages list them. Specialise it beside the enum:
//   template <> inline constexpr auto kWordsOf<Mode> = std::to_array<Word<Mode>>({...});
// Every value needs exactly one word.
template <typename Enum>
inline constexpr std::array<Word<Enum>, 0> kWordsOf = {};

// Returns the word of `value`; empty if the table lacks the value.
template <typename Enum>
constexpr std::string_view WordOf(Enum value) {
  for (const Word<Enum>& known : kWordsOf<Enum>) {
    if (known.value == value) return known.word;
  }
  return {};
}

// Returns the value of `word`, or nullopt for an unknown word. Compares case too.
template <typename Enum>
constexpr std::optional<Enum> FindWord(std::string_view word) {
  for (const Word<Enum>& known : kWordsOf<Enum>) {
    if (known.word == word) return known.value;
  }
  return std::nullopt;
}

// Joins words for a message: "serve, serve-last or refuse".
template <typename Words, typename Projection = std::identity>
std::string ListWords(const Words& words, Projection projection = {}) {
  std::string list;
  std::size_t left = std::size(words);
  for (const auto& word : words) {
    --left;
    list += std::invoke(projection, word);
    if (left > 0) list += left == 1 ? " or " : ", ";
  }
  return list;
}

}  // namespace torpor::server
