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
// rest of the process's life. Gives dlopen's handle; NotFound says why there is none.
absl::StatusOr<void*> OpenLibrary(const std::string& directory, const std::string& file);

// Opens it and fills every symbol. NotFound names what is missing.
absl::Status LoadSymbols(const std::string& directory, const std::string& file,
                         std::span<const Symbol> symbols);

}  // namespace torpor::executor
