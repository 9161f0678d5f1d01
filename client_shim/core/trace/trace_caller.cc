#include "client_shim/core/trace/trace_caller.h"

#include <cxxabi.h>
#include <dlfcn.h>
#include <limits.h>
#include <unwind.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <mutex>
#include <string_view>

namespace torpor::shim {
namespace {

// Names of templates can fill a page.
constexpr std::size_t kMaxNameBytes = 120;

struct Free {
  void operator()(char* text) const { std::free(text); }
};

std::string FolderOf(const char* file) {
  const std::unique_ptr<char, Free> path(realpath(file, nullptr));
  const std::string_view whole = path ? path.get() : file;
  return std::string(whole.substr(0, whole.rfind('/') + 1));
}

// Recognises the replacement libraries by their common folder. Examines each library once.
class OwnLibraries {
 public:
  bool Contain(const void* address) {
    Dl_info found;
    if (dladdr(address, &found) == 0) return false;
    const std::lock_guard lock(mutex_);
    const auto [place, is_new] = is_own_.try_emplace(found.dli_fbase, false);
    if (is_new) place->second = FolderOf(found.dli_fname) == folder_;
    return place->second;
  }

  static OwnLibraries& Get() {
    static auto* const libraries = new OwnLibraries();  // for exit handlers too
    return *libraries;
  }

 private:
  OwnLibraries() {
    Dl_info own;
    if (dladdr(reinterpret_cast<const void*>(&CallerOutsideOfShim), &own) != 0)
      folder_ = FolderOf(own.dli_fname);
  }

  std::string folder_;
  std::mutex mutex_;
  std::map<const void*, bool> is_own_;  // by where the library begins
};

_Unwind_Reason_Code TakeOutside(_Unwind_Context* context, void* found) {
  // A return address may be the first of the next function.
  const std::uintptr_t after_call = _Unwind_GetIP(context);
  if (after_call == 0) return _URC_END_OF_STACK;
  const auto* const address = reinterpret_cast<const void*>(after_call - 1);
  if (OwnLibraries::Get().Contain(address)) return _URC_NO_REASON;
  *static_cast<const void**>(found) = address;
  return _URC_END_OF_STACK;
}

std::string Shortened(std::string name) {
  if (name.size() <= kMaxNameBytes) return name;
  return name.substr(0, kMaxNameBytes) + "...";
}

std::string Demangled(const char* symbol) {
  int status = 0;
  const std::unique_ptr<char, Free> name(abi::__cxa_demangle(symbol, nullptr, nullptr, &status));
  return Shortened(name ? name.get() : symbol);
}

}  // namespace

std::string CallerOutsideOfShim() {
  const void* found = nullptr;
  _Unwind_Backtrace(&TakeOutside, &found);
  return found ? DescribeCode(found) : "unknown";
}

std::string DescribeCode(const void* address) {
  Dl_info found;
  if (dladdr(address, &found) == 0) return "unknown";
  const std::string_view path = found.dli_fname;
  const std::string library(path.substr(path.rfind('/') + 1));
  if (found.dli_sname) return Demangled(found.dli_sname) + " in " + library;
  char offset[24];
  std::snprintf(offset, sizeof offset, "+0x%zx",
                static_cast<std::size_t>(
                    static_cast<const char*>(address) -
                    static_cast<const char*>(static_cast<const void*>(found.dli_fbase))));
  return library + offset;
}

}  // namespace torpor::shim
