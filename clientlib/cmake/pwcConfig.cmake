# find_package(pwc): the imported library pwc::pwc. Paths are relative, so that an installation may
# be moved.
get_filename_component(pwc_libdir "${CMAKE_CURRENT_LIST_DIR}/../.." ABSOLUTE)
get_filename_component(pwc_prefix "${pwc_libdir}/@up@" ABSOLUTE)

if(NOT TARGET pwc::pwc)
  add_library(pwc::pwc SHARED IMPORTED)
  set_target_properties(pwc::pwc PROPERTIES
    IMPORTED_LOCATION "${pwc_libdir}/libpwc.so.@soversion@"
    IMPORTED_SONAME "libpwc.so.@soversion@"
    INTERFACE_INCLUDE_DIRECTORIES "${pwc_prefix}/@includedir@")
endif()

unset(pwc_libdir)
unset(pwc_prefix)
