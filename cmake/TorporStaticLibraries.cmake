# Links gRPC, protobuf, Abseil and what they stand on from their archives, so that programs run on
# machines without them. Debian's CMake targets name the shared libraries; the archives lie beside
# those. Sanitizer builds keep the shared ones, which suppressions can name.
if(TORPOR_SANITIZER)
  return()
endif()

# torpor_prefer_archive(TARGET): an imported shared library becomes its archive where there is one.
function(torpor_prefer_archive target)
  # Debian builds its packages as configuration "None"; FindProtobuf says "Release".
  foreach(property IMPORTED_LOCATION IMPORTED_LOCATION_NONE IMPORTED_LOCATION_RELEASE)
    get_target_property(location ${target} ${property})
    string(REGEX REPLACE "\\.so[.0-9]*$" ".a" archive "${location}")
    if(EXISTS "${archive}")
      set_target_properties(${target} PROPERTIES ${property} "${archive}")
    endif()
  endforeach()
endfunction()

get_property(imported_targets DIRECTORY PROPERTY IMPORTED_TARGETS)
list(FILTER imported_targets INCLUDE REGEX "^(absl|gRPC|protobuf|re2|c-ares)::")
foreach(target IN LISTS imported_targets)
  get_target_property(type ${target} TYPE)
  if(type MATCHES "SHARED_LIBRARY|UNKNOWN_LIBRARY")
    torpor_prefer_archive(${target})
  endif()
endforeach()
# Found by pkg-config, which knows no archives.
set_target_properties(re2::re2 PROPERTIES INTERFACE_LINK_LIBRARIES "-l:libre2.a;Threads::Threads")
