#include "examples/service/program.h"

#include <unistd.h>

#include <climits>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <utility>

namespace torpor::examples {

Flags ParseFlags(int argc, char** argv, const std::string& usage, Flags known) {
  for (int i = 1; i < argc; i += 2) {
    const std::string flag = argv[i];
    if (flag == "--help" || flag == "-h") {
      std::fputs(usage.c_str(), stdout);
      std::exit(0);
    }
    const auto entry = flag.rfind("--", 0) == 0 ? known.find(flag.substr(2)) : known.end();
    if (entry == known.end() || i + 1 == argc) {
      std::fprintf(stderr, "%s: unknown flag or missing value\n%s", flag.c_str(), usage.c_str());
      std::exit(2);
    }
    entry->second = argv[i + 1];
  }
  return known;
}

int IntFlag(const Flags& flags, const std::string& name, int low, int high) {
  const std::string& text = flags.at(name);
  char* end = nullptr;
  const long value = std::strtol(text.c_str(), &end, 10);
  if (text.empty() || *end != '\0' || value < low || value > high) {
    std::fprintf(stderr, "--%s: %s is not a number from %d to %d\n", name.c_str(), text.c_str(),
                 low, high);
    std::exit(2);
  }
  return static_cast<int>(value);
}

std::string ProgramFolder() {
  char path[PATH_MAX];
  const ssize_t length = readlink("/proc/self/exe", path, sizeof(path));
  if (length < 0) return ".";
  const std::string file(path, static_cast<std::size_t>(length));
  return file.substr(0, file.rfind('/'));
}

int RunProgram(const char* name, int (*run)(int, char**), int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s: %s\n", name, error.what());
    return 1;
  }
}

}  // namespace torpor::examples
