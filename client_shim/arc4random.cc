#include <sys/random.h>

#include <cstdint>
#include <cstdlib>

// Frees the libraries from glibc 2.36, which libstdc++'s std::random_device in the static archive
// would require. Hidden, so that the program's own arc4random stays in place.
extern "C" __attribute__((visibility("hidden"))) std::uint32_t arc4random() {
  std::uint32_t value = 0;
  if (getrandom(&value, sizeof value, 0) != sizeof value) std::abort();
  return value;
}
