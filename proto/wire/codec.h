#pragma once

#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

// The packed encoding of all messages between the client shim and the daemon: fields one after
// another, each padded to 8 bytes, little endian. A message is a struct with
//   template <typename V> void Visit(V& v) { v(a); v(b); ... }
// which serves both Writer and Reader, so that the two cannot disagree.
namespace torpor::wire {

inline constexpr std::size_t kAlignment = 8;

constexpr std::size_t Padded(std::size_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

template <typename T>
concept Scalar = std::is_arithmetic_v<T> || std::is_enum_v<T>;

template <typename T>
concept PlainArray = requires {
  typename T::value_type;
  std::tuple_size<T>::value;
}
&&Scalar<typename T::value_type>;

// Appends to a byte vector that the caller owns.
class Writer {
 public:
  explicit Writer(std::vector<std::uint8_t>& out) : out_(out) {}

  template <Scalar T>
  void operator()(const T& value) {
    Append(&value, sizeof value);
  }
  template <PlainArray T>
  void operator()(const T& value) {
    Append(value.data(), sizeof value);
  }
  void operator()(const std::string& value) { Sized(value.data(), value.size()); }
  void operator()(std::string_view value) { Sized(value.data(), value.size()); }
  void operator()(std::span<const std::uint8_t> value) { Sized(value.data(), value.size()); }
  template <typename T>
  void operator()(const std::vector<T>& values) {
    if constexpr (Scalar<T>) {
      Sized(values.data(), values.size() * sizeof(T));
    } else {
      (*this)(static_cast<std::uint64_t>(values.size()));
      for (const T& value : values) (*this)(value);
    }
  }
  template <typename T>
  requires requires(T& t, Writer& w) { t.Visit(w); }
  void operator()(const T& message) {
    const_cast<T&>(message).Visit(*this);  // Visit with a Writer only reads
  }

 private:
  void Append(const void* data, std::size_t bytes) {
    const std::size_t at = out_.size();
    out_.resize(at + Padded(bytes));
    if (bytes > 0) std::memcpy(out_.data() + at, data, bytes);
  }
  void Sized(const void* data, std::size_t bytes) {
    (*this)(static_cast<std::uint64_t>(bytes));
    Append(data, bytes);
  }

  std::vector<std::uint8_t>& out_;
};

// Reads untrusted bytes: checks every length against the remaining bytes. After the first fault
// `ok()` is false and every later field reads as zero or empty.
class Reader {
 public:
  explicit Reader(std::span<const std::uint8_t> bytes) : rest_(bytes) {}

  bool ok() const { return ok_; }
  bool done() const { return ok_ && rest_.empty(); }

  template <Scalar T>
  void operator()(T& value) {
    value = T{};
    if (const std::uint8_t* from = Take(sizeof value)) std::memcpy(&value, from, sizeof value);
  }
  template <PlainArray T>
  void operator()(T& value) {
    value = T{};
    if (const std::uint8_t* from = Take(sizeof value))
      std::memcpy(value.data(), from, sizeof value);
  }
  void operator()(std::string& value) {
    const std::span<const std::uint8_t> bytes = TakeSized();
    value.assign(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  }
  // Borrows: the view is valid as long as the reader's bytes.
  void operator()(std::span<const std::uint8_t>& value) { value = TakeSized(); }
  template <typename T>
  void operator()(std::vector<T>& values) {
    values.clear();
    if constexpr (Scalar<T>) {
      const std::span<const std::uint8_t> bytes = TakeSized();
      if (bytes.size() % sizeof(T) != 0) return Fail();
      values.resize(bytes.size() / sizeof(T));
      if (!bytes.empty()) std::memcpy(values.data(), bytes.data(), bytes.size());
    } else {
      std::uint64_t count = 0;
      (*this)(count);
      // Every element takes at least one word, so that a larger count is malformed.
      if (count > rest_.size() / kAlignment) return Fail();
      values.reserve(count);
      for (std::uint64_t i = 0; i < count && ok_; ++i) (*this)(values.emplace_back());
    }
  }
  template <typename T>
  requires requires(T& t, Reader& r) { t.Visit(r); }
  void operator()(T& message) { message.Visit(*this); }

 private:
  void Fail() {
    ok_ = false;
    rest_ = {};
  }
  const std::uint8_t* Take(std::size_t bytes) {
    if (bytes > rest_.size() || Padded(bytes) > rest_.size()) {
      Fail();
      return nullptr;
    }
    const std::uint8_t* from = rest_.data();
    rest_ = rest_.subspan(Padded(bytes));
    return from;
  }
  std::span<const std::uint8_t> TakeSized() {
    std::uint64_t bytes = 0;
    (*this)(bytes);
    const std::uint8_t* from = Take(bytes);
    return from ? std::span(from, bytes) : std::span<const std::uint8_t>();
  }

  std::span<const std::uint8_t> rest_;
  bool ok_ = true;
};

// Returns the fields of `message` in a new buffer.
template <typename Message>
std::vector<std::uint8_t> Encoded(const Message& message) {
  std::vector<std::uint8_t> fields;
  Writer writer(fields);
  writer(message);
  return fields;
}

}  // namespace torpor::wire
