// The imaginary library itself: only its exported names matter.
#define EXPORT(name) \
  __attribute__((visibility("default"))) int name(void) { return 0; }
EXPORT(tinyCreate)
EXPORT(tinyCopy)
EXPORT(tinyCopy_ptsz)
EXPORT(tinyVersion)
EXPORT(tinyName)
EXPORT(tinyHidden)
EXPORT(tinyUnknown)
EXPORT(tinySmul_v2)
EXPORT(tinySmul_v2_64)
EXPORT(tinyDotEx)
EXPORT(tinySetLimit)
EXPORT(tinyShade)
EXPORT(tinyShadeBytes)
EXPORT(tinySolve)
EXPORT(tinySsum)
EXPORT(tinyTurn)
__attribute__((visibility("hidden"))) int tinyInternal(void) { return 0; }
