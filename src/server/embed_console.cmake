# Writes the source of console_assets(): `cmake -DOUT=assets.cpp -DROOT=web/dist -DFILES=index.html,app.js -P …`.
# The assembler puts in the bytes of the files, so that neither their size nor their content matters.
string(REPLACE "," ";" FILES "${FILES}")
set(types
  "html=text/html|charset=utf-8" "js=text/javascript|charset=utf-8" "css=text/css|charset=utf-8"
  "svg=image/svg+xml" "json=application/json" "map=application/json" "png=image/png" "ico=image/x-icon"
  "woff2=font/woff2" "txt=text/plain|charset=utf-8")
set(bytes "")
set(rows "")
set(number 0)
foreach(file IN LISTS FILES)
  string(REGEX MATCH "[^.]*$" extension ${file})
  set(type application/octet-stream)
  foreach(pair IN LISTS types)
    if(pair MATCHES "^${extension}=(.*)$")
      string(REPLACE "|" "; " type ${CMAKE_MATCH_1})
    endif()
  endforeach()
  string(APPEND bytes "asm(\".section .rodata\\nasset_${number}:\\n.incbin \\\"${ROOT}/${file}\\\"\\nasset_${number}_end:\\n.byte 0\\n.previous\\n\");\n"
    "extern const char begin_${number}[] asm(\"asset_${number}\");\nextern const char end_${number}[] asm(\"asset_${number}_end\");\n")
  string(APPEND rows "        Asset{\"/${file}\", \"${type}\", {begin_${number}, static_cast<std::size_t>(end_${number} - begin_${number})}},\n")
  math(EXPR number "${number} + 1")
endforeach()
file(WRITE ${OUT} "#include \"server/console.hpp\"\n\n#include <array>\n#include <cstddef>\n\n${bytes}
namespace holdfast::server {

std::span<const Asset> console_assets() {
    static const std::array assets{
${rows}    };
    return assets;
}

}  // namespace holdfast::server
")
