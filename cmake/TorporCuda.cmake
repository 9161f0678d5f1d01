# CUDA C++ programs, built by nvcc against the shared runtime as a user would build them.
set(TORPOR_CUDA_HOME $ENV{TORPOR_CUDA_HOME})
if(NOT TORPOR_CUDA_HOME)
  # Where tools/dev/install_cuda_toolkit.sh puts it on a machine that has none.
  set(TORPOR_CUDA_HOME $ENV{HOME}/.cache/torpor/cuda-13.0)
endif()
find_program(NVCC nvcc HINTS /usr/local/cuda/bin ${TORPOR_CUDA_HOME}/bin REQUIRED)
get_filename_component(CUDA_HOME ${NVCC} REALPATH)
get_filename_component(CUDA_HOME ${CUDA_HOME} DIRECTORY)
get_filename_component(CUDA_HOME ${CUDA_HOME} DIRECTORY)

# The toolkit's headers: the driver ABI the executor codes against and the emulator implements.
add_library(cuda_headers INTERFACE)
target_include_directories(cuda_headers SYSTEM INTERFACE ${CUDA_HOME}/include)

# torpor_cuda_program(NAME SOURCE [UNITS sources...] [ARCHITECTURE arch] [DIRECTORY dir]
#                     [LIBRARIES cublas ...] [OPTIONS ...] [DEPENDS files...])
# UNITS are further translation units, linked as relocatable device code.
# SASS for sm_90 runs on a real GPU without a compile at start; the PTX runs everywhere else.
function(torpor_cuda_program name source)
  cmake_parse_arguments(ARG "" "ARCHITECTURE;DIRECTORY" "UNITS;LIBRARIES;OPTIONS;DEPENDS" ${ARGN})
  if(NOT ARG_DIRECTORY)
    set(ARG_DIRECTORY ${PROJECT_BINARY_DIR}/cuda)
  endif()
  if(NOT ARG_ARCHITECTURE)
    set(ARG_ARCHITECTURE sm_90)
  endif()
  file(MAKE_DIRECTORY ${ARG_DIRECTORY})
  list(TRANSFORM ARG_LIBRARIES PREPEND -l)
  set(sources ${source} ${ARG_UNITS})
  list(TRANSFORM sources PREPEND ${CMAKE_CURRENT_SOURCE_DIR}/)
  if(ARG_UNITS)
    list(APPEND ARG_OPTIONS -rdc=true)
  endif()
  add_custom_command(OUTPUT ${ARG_DIRECTORY}/${name}
    COMMAND ${NVCC} -std=c++17 -O3 -cudart shared -arch=${ARG_ARCHITECTURE} -I${PROJECT_SOURCE_DIR}
            ${ARG_OPTIONS} -o ${ARG_DIRECTORY}/${name} ${sources} ${ARG_LIBRARIES}
    DEPENDS ${sources} ${ARG_DEPENDS}
    COMMENT "nvcc ${name}" VERBATIM)
  add_custom_target(cuda_${name} ALL DEPENDS ${ARG_DIRECTORY}/${name})
endfunction()

# torpor_embedded_fatbin(OUTPUT_VARIABLE SOURCE SYMBOL [NAMESPACE]): a C++ source that defines
# `extern const char SYMBOL[]` in a namespace, torpor::executor by default, the fatbin of a .cu file: machine code
# for the GPUs that servers have, which starts without a compilation, and PTX for all others.
function(torpor_embedded_fatbin output source symbol)
  get_filename_component(name ${source} NAME_WE)
  set(namespace torpor::executor)
  if(ARGN)
    list(GET ARGN 0 namespace)
  endif()
  set(fatbin ${CMAKE_CURRENT_BINARY_DIR}/${name}.fatbin)
  set(generated ${CMAKE_CURRENT_BINARY_DIR}/${name}_fatbin.cc)
  add_custom_command(OUTPUT ${generated}
    COMMAND ${NVCC} -fatbin -std=c++17 -O3 -gencode arch=compute_75,code=compute_75
            -gencode arch=compute_80,code=sm_80 -gencode arch=compute_90,code=sm_90
            -gencode arch=compute_100,code=sm_100 -gencode arch=compute_120,code=sm_120
            -o ${fatbin} ${CMAKE_CURRENT_SOURCE_DIR}/${source}
    COMMAND ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/cmake/embed_file.py
            ${fatbin} ${namespace} ${symbol} ${generated}
    DEPENDS ${source} ${PROJECT_SOURCE_DIR}/cmake/embed_file.py
    COMMENT "nvcc ${name}.fatbin" VERBATIM)
  set(${output} ${generated} PARENT_SCOPE)
endfunction()

# torpor_wrapped_driver(NAME SOURCE FOLDER): library NAME and a folder for cuda_library_dir, whose
# driver is the emulator's but for the calls that SOURCE defines.
function(torpor_wrapped_driver name source folder)
  add_library(${name} SHARED ${source})
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR})
  target_link_libraries(${name} PRIVATE cuda_headers torpor_warnings
                        -Wl,--no-as-needed emulator_libcuda)
  set_target_properties(${name} PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${folder}
                        LIBRARY_OUTPUT_NAME cuda SUFFIX .so.1 NO_SONAME ON)
  # The emulator's own has the soname libcuda.so.1.
  target_link_options(${name} PRIVATE -Wl,-soname,lib${name}.so)
  foreach(library cublas cublasLt)
    add_custom_command(TARGET ${name} POST_BUILD
      COMMAND ${CMAKE_COMMAND} -E create_symlink ${TORPOR_EMULATOR_DIR}/lib${library}.so.13
              ${folder}/lib${library}.so.13)
  endforeach()
endfunction()
