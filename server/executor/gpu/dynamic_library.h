#pragma once

#include <span>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace torpor::executor {

// A function pointer to fill from a shared library.
struct Symbol {
  template <typename Function>
  Symbol(const char* symbol_name, Function*& function)
      : name(symbol_name), slot(reinterpret_cast<void**>(&function)) {}

  const char* name;
  void** slot;
};

// Opens `file` in `directory` (empty: where the system's loader finds it), privately and for the
// rest of the process's life. Returns dlopen's handle; NotFound gives the loader's reason.
absl::StatusOr<void*> OpenLibrary(const std::string& directory, const std::string& file);

// Opens the library and fills every symbol. NotFound names the missing library or symbol.
absl::Status LoadSymbols(const std::string& directory, const std::string& file,
                         std::span<const Symbol> symbols);

}  // namespace torpor::executor
