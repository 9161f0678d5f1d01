#pragma once

#include <array>
#include <cstdint>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "proto/wire/codec.h"

namespace torpor::wire {

// A visitor that gives every field of a message, however deep, bytes of its own.
class FieldFiller {
 public:
  explicit FieldFiller(std::uint32_t seed) : random_(seed) {
    for (std::uint8_t& byte : bytes_) byte = static_cast<std::uint8_t>(random_());
  }

  template <Scalar T>
  void operator()(T& value) {
    value = static_cast<T>(random_());
  }
  template <PlainArray T>
  void operator()(T& value) {
    for (auto& element : value) (*this)(element);
  }
  void operator()(std::string& value) {
    value.resize(Length());
    for (char& character : value) character = static_cast<char>(random_());
  }
  void operator()(std::span<const std::uint8_t>& value) {
    value = std::span(bytes_).first(Length());
  }
  template <typename T>
  void operator()(std::vector<T>& values) {
    values.resize(Length());
    for (T& value : values) (*this)(value);
  }
  template <typename T>
  requires requires(T& t, FieldFiller& f) { t.Visit(f); }
  void operator()(T& message) { message.Visit(*this); }

 private:
  std::size_t Length() { return random_() % 20; }

  std::mt19937 random_;
  std::array<std::uint8_t, 32> bytes_{};
};

}  // namespace torpor::wire
