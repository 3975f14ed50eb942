# Makes html_page_text.cc of the page's sources: cmake -DSOURCE=FOLDER -DSCRIPTS=NAMES -DOUT=FILE -P embed.cmake. The page's
# policy names its style and its script by their SHA-256, so a browser runs no other one.

# base64_of_hex(HEX OUT): for 64 hex digits.
function(base64_of_hex hex out)
  set(alphabet "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/")
  set(text "")
  foreach(at RANGE 0 63 3)  # three digits are two characters
    string(SUBSTRING "${hex}00" ${at} 3 digits)
    math(EXPR high "0x${digits} >> 6")
    math(EXPR low "0x${digits} & 63")
    string(SUBSTRING ${alphabet} ${high} 1 first)
    string(SUBSTRING ${alphabet} ${low} 1 second)
    string(APPEND text ${first}${second})
  endforeach()
  string(SUBSTRING ${text} 0 43 text)  # the last digits are padding
  set(${out} "${text}=" PARENT_SCOPE)
endfunction()

# policy_hash(TEXT OUT): the source of a Content-Security-Policy that allows TEXT.
function(policy_hash text out)
  string(SHA256 hex "${text}")
  base64_of_hex(${hex} hash)
  set(${out} "'sha256-${hash}'" PARENT_SCOPE)
endfunction()

file(READ ${SOURCE}/page.css style)
set(script "'use strict';\n(() => {\n")
foreach(name IN LISTS SCRIPTS)
  file(READ ${SOURCE}/${name} text)
  string(APPEND script "${text}")
endforeach()
string(APPEND script "})();\n")
policy_hash("${style}" style_hash)
policy_hash("${script}" script_hash)

file(READ ${SOURCE}/page.html page)
string(REPLACE "@STYLE_HASH@" "${style_hash}" page "${page}")
string(REPLACE "@SCRIPT_HASH@" "${script_hash}" page "${page}")
string(REPLACE "@STYLE@" "${style}" page "${page}")
string(REPLACE "@SCRIPT@" "${script}" page "${page}")
string(FIND "${page}" "@DATA@" at)
string(SUBSTRING "${page}" 0 ${at} head)
math(EXPR at "${at} + 6")
string(SUBSTRING "${page}" ${at} -1 tail)
# literals(TEXT OUT): TEXT as string literals. Compilers want no literal above 65,536 characters.
function(literals text out)
  string(LENGTH "${text}" len)
  set(made "")
  foreach(at RANGE 0 ${len} 16000)
    string(SUBSTRING "${text}" ${at} 16000 piece)
    string(APPEND made "    R\"WEFTPAGE(${piece})WEFTPAGE\",\n")
  endforeach()
  set(${out} "${made}" PARENT_SCOPE)
endfunction()
literals("${head}" head)
literals("${tail}" tail)

file(WRITE ${OUT} "#include \"apps/dissect/html_page.h\"

namespace weft::apps::dissect {

namespace {
constexpr std::string_view kHead[] = {
${head}};
constexpr std::string_view kTail[] = {
${tail}};
}  // namespace

const std::span<const std::string_view> html_page_head = kHead;
const std::span<const std::string_view> html_page_tail = kTail;

}  // namespace weft::apps::dissect
")
