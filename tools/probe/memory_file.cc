#include "tools/probe/memory_file.h"

#include <sys/mman.h>
#include <unistd.h>

namespace torpor::probe {
namespace {

constexpr std::size_t kPage = 4096;

int Create(Pages pages) {
  const unsigned huge = pages == Pages::kHuge ? MFD_HUGETLB : 0U;
  return memfd_create("probe", MFD_CLOEXEC | huge);
}

}  // namespace

MemoryFile::MemoryFile(std::size_t size, Pages pages) : size_(size), file_(Create(pages)) {
  if (file_.get() < 0 || ftruncate(file_.get(), static_cast<off_t>(size)) != 0) return;
  void* const begin = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, file_.get(), 0);
  if (begin == MAP_FAILED) return;
  if (pages == Pages::kAdvised) madvise(begin, size, MADV_HUGEPAGE);
  begin_ = begin;
}

MemoryFile::~MemoryFile() {
  if (begin_ != nullptr) munmap(begin_, size_);
}

void MemoryFile::Touch() {
  if (begin_ == nullptr) return;
  for (std::size_t at = 0; at < size_; at += kPage) static_cast<volatile char*>(begin_)[at] = 1;
}

}  // namespace torpor::probe
