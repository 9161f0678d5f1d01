#pragma once

#include <cstddef>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "base/units.h"

namespace torpor::executor {

// The names of variables that are found in one module. A hostile module may have a table of nearly
// as many long names as it has bytes, and entries that are a thousand times as long as their
// compressed form: what is found and what is read is bounded, and behind the bound nothing is
// taken.
class VariableNames {
 public:
  static constexpr std::size_t kMaxNames = 1u << 16;
  static constexpr Bytes kMaxNameBytes = 16 * kMiB;   // those that are there twice count twice
  static constexpr Bytes kMaxReadBytes = 512 * kMiB;  // of PTX and of what is decompressed

  bool is_full() const { return is_full_; }

  void Add(std::string_view name) {
    if (is_full_ || !Take(name.size() + 1, name_bytes_left_)) return;
    names_.emplace(name);
    is_full_ = names_.size() > kMaxNames;
  }
  // Whether `bytes` more of the module may be read.
  bool MayRead(Bytes bytes) { return !is_full_ && Take(bytes, read_bytes_left_); }

  // ResourceExhausted if it was too much.
  absl::StatusOr<std::set<std::string>> Finish() && {
    if (!is_full_) return std::move(names_);
    return absl::ResourceExhaustedError(absl::StrCat(
        "a module with variables of more than ", kMaxNames, " names, ", kMaxNameBytes,
        " bytes of names, or in ", kMaxReadBytes, " bytes of PTX and decompressed cubins"));
  }

 private:
  bool Take(Bytes bytes, Bytes& left) {
    is_full_ = bytes > left;
    if (!is_full_) left -= bytes;
    return !is_full_;
  }

  std::set<std::string> names_;
  Bytes name_bytes_left_ = kMaxNameBytes;
  Bytes read_bytes_left_ = kMaxReadBytes;
  bool is_full_ = false;
};

}  // namespace torpor::executor
