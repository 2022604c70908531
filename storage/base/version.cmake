# Writes OUTPUT from TEMPLATE with the commit of SOURCE_DIR, and leaves it alone when nothing changed,
# so that only a new commit compiles it anew. Run at every build.
set(LABRACK_GIT_COMMIT "unknown")
execute_process(COMMAND git -C ${SOURCE_DIR} rev-parse --short=12 HEAD
                OUTPUT_VARIABLE commit OUTPUT_STRIP_TRAILING_WHITESPACE
                RESULT_VARIABLE failed ERROR_QUIET)
if(NOT failed AND commit MATCHES "^[0-9a-f]+$")
  set(LABRACK_GIT_COMMIT ${commit})
  execute_process(COMMAND git -C ${SOURCE_DIR} status --porcelain --untracked-files=no
                  OUTPUT_VARIABLE changes ERROR_QUIET)
  if(changes)
    set(LABRACK_GIT_COMMIT ${commit}-dirty)
  endif()
endif()
configure_file(${TEMPLATE} ${OUTPUT} @ONLY)
