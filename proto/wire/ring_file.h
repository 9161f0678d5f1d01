#pragma once

#include <sys/mman.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstdint>
#include <memory>
#include <span>

#include "proto/wire/ring_memory.h"

namespace torpor::wire {

// The memory file of a session's rings, mapped; unmapped by the destructor.
class RingFile {
 public:
  // Maps the file of descriptor `fd`. Returns null, with errno, if that is impossible or the file
  // is too short.
  static std::unique_ptr<RingFile> Map(int fd) {
    struct stat file {};
    if (fstat(fd, &file) != 0) return nullptr;
    if (static_cast<Bytes>(file.st_size) < kRingFileBytes) {
      errno = EPROTO;
      return nullptr;
    }
    void* const data = mmap(nullptr, kRingFileBytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (data == MAP_FAILED) return nullptr;
    return std::unique_ptr<RingFile>(new RingFile(static_cast<std::uint8_t*>(data)));
  }
  ~RingFile() { munmap(data_, kRingFileBytes); }
  RingFile(const RingFile&) = delete;
  RingFile& operator=(const RingFile&) = delete;

  RingPage& page() const { return *reinterpret_cast<RingPage*>(data_); }
  std::span<std::uint8_t> requests() const { return {data_ + kRingPageBytes, kRequestRingBytes}; }
  std::span<std::uint8_t> replies() const {
    return {data_ + kRingPageBytes + kRequestRingBytes, kReplyRingBytes};
  }

 private:
  explicit RingFile(std::uint8_t* data) : data_(data) {}

  std::uint8_t* const data_;
};

}  // namespace torpor::wire
