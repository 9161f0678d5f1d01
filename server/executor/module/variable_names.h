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

// Collects the names of variables of one module, within limits on names and on bytes read. Without
// limits a hostile module could have nearly as many long names as bytes, and compressed entries
// that expand a thousandfold. After a limit is exceeded no further name is added.
class VariableNames {
 public:
  static constexpr std::size_t kMaxNames = 1u << 16;
  static constexpr Bytes kMaxNameBytes = 16 * kMiB;   // counting duplicates
  static constexpr Bytes kMaxReadBytes = 512 * kMiB;  // of PTX and decompressed cubins

  bool is_full() const { return is_full_; }

  void Add(std::string_view name) {
    if (is_full_ || !Take(name.size() + 1, name_bytes_left_)) return;
    names_.emplace(name);
    is_full_ = names_.size() > kMaxNames;
  }
  // Whether `bytes` more of the module may be read; counts the bytes.
  bool MayRead(Bytes bytes) { return !is_full_ && Take(bytes, read_bytes_left_); }

  // Returns the names; ResourceExhausted if a limit was exceeded.
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
