#include <sys/random.h>

#include <cstdint>
#include <cstdlib>

// libstdc++'s std::random_device, which its static archive drags in, would bind us to glibc 2.36.
// Hidden: the program's own arc4random is left alone.
extern "C" __attribute__((visibility("hidden"))) std::uint32_t arc4random() {
  std::uint32_t value = 0;
  if (getrandom(&value, sizeof value, 0) != sizeof value) std::abort();
  return value;
}
