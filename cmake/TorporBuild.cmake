# Language level, warnings, sanitizers and where outputs go.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE RelWithDebInfo)
endif()

set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin)
set(TORPOR_CLIENT_DIR ${PROJECT_BINARY_DIR}/lib/torpor/client)
set(TORPOR_EMULATOR_DIR ${PROJECT_BINARY_DIR}/lib/torpor/emulator)
set(TORPOR_TOPOLOGY_DIR ${PROJECT_BINARY_DIR}/lib/torpor/topologies)

set(TORPOR_SANITIZER "" CACHE STRING "address, thread, fuzzer or empty")

find_program(CCACHE_PROGRAM ccache)
if(CCACHE_PROGRAM)
  # Checkouts in different folders share what is compiled.
  set(launcher env CCACHE_BASEDIR=${PROJECT_SOURCE_DIR} CCACHE_NOHASHDIR=1 ${CCACHE_PROGRAM})
  set(CMAKE_C_COMPILER_LAUNCHER ${launcher})
  set(CMAKE_CXX_COMPILER_LAUNCHER ${launcher})
endif()

add_library(torpor_warnings INTERFACE)
target_compile_options(torpor_warnings INTERFACE
  $<$<COMPILE_LANGUAGE:C,CXX>:-Wall -Wextra -Wconversion>
  # g++ is the judge; preset `fuzz` only borrows clang for its coverage.
  $<$<CXX_COMPILER_ID:GNU>:-Werror>)
if(CMAKE_UNITY_BUILD)
  # Warns of unnamed namespaces in all but the file that the compiler was started with.
  add_compile_options($<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-subobject-linkage>)
endif()

if(TORPOR_SANITIZER STREQUAL "address")
  add_compile_options(-fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer)
  # GCC documents that it warns falsely of instrumented code.
  add_compile_options($<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>)
  add_link_options(-fsanitize=address,undefined)
elseif(TORPOR_SANITIZER STREQUAL "thread")
  # TSan does not model fences; ours only order non-atomic publication.
  add_compile_options(-fsanitize=thread -fno-omit-frame-pointer -Wno-tsan)
  # As above: of the scheduler's variants.
  add_compile_options($<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>)
  add_link_options(-fsanitize=thread)
elseif(TORPOR_SANITIZER STREQUAL "fuzzer")
  # Clang builds this preset: every object carries coverage, fuzz targets link the driver.
  add_compile_options(-fsanitize=fuzzer-no-link,address,undefined -fno-omit-frame-pointer)
  add_link_options(-fsanitize=address,undefined)
endif()

# Callers of the CUDA interfaces may put any number into an enumeration; compilers without
# -fstrict-enums take it as that number.
if(TORPOR_SANITIZER MATCHES "address|fuzzer")
  add_compile_options(-fno-sanitize=enum)
endif()
