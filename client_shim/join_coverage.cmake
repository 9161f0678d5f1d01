# cmake -DOUT=FILE -DSECTIONS="a.md;b.md" -P join_coverage.cmake
set(text "# What the client libraries answer\n\nGenerated from `proto/cuda_api/`; how to read it and how to widen it: `docs/call-table.md`.\n")
foreach(section IN LISTS SECTIONS)
  file(READ ${section} body)
  string(APPEND text "\n${body}")
endforeach()
file(WRITE ${OUT} "${text}")
