# How a folder declares its library, programs and tests.
include(GoogleTest)

# Presets compile several sources as one (docs/decisions/0026-unity-builds.md); preset `dev` does not.
set(CMAKE_UNITY_BUILD_BATCH_SIZE 12)

# torpor_compile_alone(SOURCES...): sources whose unnamed namespaces or declarations of C functions
# clash with others' of their target. Call in the target's folder.
function(torpor_compile_alone)
  set_source_files_properties(${ARGN} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
endfunction()

# torpor_compile_generated_alone(SOURCES...): the same for those of SOURCES that the build generates.
function(torpor_compile_generated_alone)
  list(FILTER ARGN INCLUDE REGEX "^${PROJECT_BINARY_DIR}/")
  if(ARGN)
    torpor_compile_alone(${ARGN})
  endif()
endfunction()

# torpor_library(NAME SOURCES... [DEPENDS...]): one static library a folder.
function(torpor_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPENDS" ${ARGN})
  torpor_compile_generated_alone(${ARG_SOURCES})
  add_library(${name} STATIC ${ARG_SOURCES})
  target_include_directories(${name} PUBLIC ${PROJECT_SOURCE_DIR} ${PROJECT_BINARY_DIR})
  target_link_libraries(${name} PUBLIC ${ARG_DEPENDS} PRIVATE torpor_warnings)
endfunction()

# torpor_program(NAME SOURCES... [DEPENDS...]): a program in build/bin.
function(torpor_program name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPENDS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR} ${PROJECT_BINARY_DIR})
  target_link_libraries(${name} PRIVATE ${ARG_DEPENDS} torpor_warnings)
endfunction()

# torpor_test(NAME SOURCES... [ALONE sources...] [DEPENDS...] [LABELS...] [TIMEOUT seconds]): a
# GoogleTest program; every case is one ctest test and they run in parallel. ALONE: sources whose
# unnamed namespaces repeat names.
function(torpor_test name)
  cmake_parse_arguments(ARG "" "TIMEOUT" "SOURCES;ALONE;DEPENDS;LABELS" ${ARGN})
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 120)
  endif()
  torpor_compile_generated_alone(${ARG_SOURCES})
  if(ARG_ALONE)
    torpor_compile_alone(${ARG_ALONE})
  endif()
  add_executable(${name} ${ARG_SOURCES} ${ARG_ALONE})
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR} ${PROJECT_BINARY_DIR})
  target_link_libraries(${name} PRIVATE ${ARG_DEPENDS} torpor_warnings GTest::gtest GTest::gmock GTest::gtest_main)
  gtest_discover_tests(${name} DISCOVERY_MODE PRE_TEST PROPERTIES TIMEOUT ${ARG_TIMEOUT} LABELS "${ARG_LABELS}")
endfunction()

# Everything that `make fuzz` runs, so that preset `fuzz` builds nothing else.
add_custom_target(fuzzers)

# torpor_fuzz(NAME SOURCES... [DEPENDS...]): a libFuzzer target, built by preset `fuzz`
# only; `make fuzz` and CI run every program in build-fuzz/fuzz.
function(torpor_fuzz name)
  if(NOT TORPOR_SANITIZER STREQUAL "fuzzer")
    return()
  endif()
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPENDS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/fuzz)
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR} ${PROJECT_BINARY_DIR})
  target_link_libraries(${name} PRIVATE ${ARG_DEPENDS} torpor_warnings)
  target_link_options(${name} PRIVATE -fsanitize=fuzzer)
  add_dependencies(fuzzers ${name})
endfunction()

# torpor_benchmark(NAME SOURCES... [DEPENDS...] [SMOKE regex]): a Google Benchmark program in build/bench.
# SMOKE matches benchmarks of it that are over in a moment: ctest runs them, whatever the figures, so that
# a program that does not start is noticed.
function(torpor_benchmark name)
  cmake_parse_arguments(ARG "" "SMOKE" "SOURCES;DEPENDS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bench)
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR} ${PROJECT_BINARY_DIR})
  target_link_libraries(${name} PRIVATE ${ARG_DEPENDS} torpor_warnings benchmark::benchmark)
  # Tests of sanitized builds are built without benchmarks.
  if(ARG_SMOKE AND NOT TORPOR_SANITIZER)
    add_test(NAME ${name}_starts
             COMMAND ${name} --benchmark_filter=${ARG_SMOKE} --benchmark_min_time=0.001)
    set_tests_properties(${name}_starts PROPERTIES LABELS benchmark TIMEOUT 60
                         FAIL_REGULAR_EXPRESSION "Failed to match;ERROR OCCURRED")
  endif()
endfunction()
