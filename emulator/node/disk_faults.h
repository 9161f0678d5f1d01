#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

namespace YAML {
class Node;
}

namespace torpor::emulator {

class DocumentReader;

// Operations on files that are counted.
enum class DiskOperation {
  kCreate,
  kRead,    // of a whole file, or of a part
  kWrite,   // of a part
  kSync,    // of a file, or of a folder
  kRename,  // under the new name
  kRemove,
};

enum class DiskError {
  kNoSpace,      // ENOSPC; nothing is done
  kInputOutput,  // EIO; nothing is done
  kTorn,         // of a write half is done, then EIO
  kWrongBytes,   // a read succeeds, with a bit flipped
};

// What the nth and later ones of the operations on matching files meet. A plain record.
struct DiskFault {
  static constexpr std::uint64_t kForever = std::numeric_limits<std::uint64_t>::max();

  DiskOperation operation = DiskOperation::kWrite;
  std::string path = "*";  // a glob over the whole path
  std::uint64_t nth = 1;
  std::uint64_t times = 1;  // so many of them; kForever: all
  DiskError error = DiskError::kInputOutput;

  // Whether such an operation on the file counts.
  bool Counts(DiskOperation other, const std::string& other_path) const;
  // Whether the `number`th that counts, from 1 on, meets the error.
  bool IsMetBy(std::uint64_t number) const { return number >= nth && number - nth < times; }

  friend bool operator==(const DiskFault&, const DiskFault&) = default;
};

// As in topology files: "write", "ENOSPC".
std::string_view NameOf(DiskOperation operation);
std::string_view NameOf(DiskError error);

// Reads the list `disk` of the mapping `faults` of a topology file; without the list there are
// none.
std::vector<DiskFault> ReadDiskFaults(const YAML::Node& list, DocumentReader& reader);

}  // namespace torpor::emulator
