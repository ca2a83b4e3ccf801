-- The environment of scripts, made once when an interpreter starts. It gets one table: `rust` holds the
-- functions written in Rust, `is_library` says whether functions (FUNCTION LOAD) will run here.
--
-- Redis marks tables as read-only in an interpreter it has changed for that. Here a read-only table is an empty
-- one, its *face*, whose metatable reads from the table behind it and refuses writes; so what reads or writes past
-- metatables (next, rawget, rawset, table.insert ...) asks first whether it has a face in hand. The tables
-- behind faces never leave this file.
--
-- An error raised by a function written in Rust is opened before a script sees it: see raised.rs.
-- The arguments of wrapped functions are checked here, so that errors name the script's line and not one of
-- these.
local setup = ...
local rust = setup.rust

local type, select, tostring, tonumber, getmetatable_, setmetatable_ =
    type, select, tostring, tonumber, getmetatable, setmetatable
local next_, pairs_, rawget_, rawset_, pcall_, xpcall_, error_, loadstring_, setfenv_ =
    next, pairs, rawget, rawset, pcall, xpcall, error, loadstring, setfenv
local sort_, foreach_, concat_ = table.sort, table.foreach, table.concat
local sub_, byte_, len_ = string.sub, string.byte, string.len
local resume_ = coroutine.resume
local floor_ = math.floor
local bad, fail_behind, caught, deny = rust.bad_argument, rust.fail_behind, rust.caught, rust.deny_raw

-- The table behind each face. Faces of libraries go away with them, so this keeps none alive.
local behind = setmetatable_({}, { __mode = 'k' })
-- What getmetatable says of a face; of most it is nothing.
local shown = setmetatable_({}, { __mode = 'k' })

local function face_of(content)
  local face = {}
  behind[face] = content
  return setmetatable_(face, { __index = content, __newindex = rust.deny })
end

-- Errors ---------------------------------------------------------------------------------------------------

local pcall = rust.protector(function(err)
  err = caught(err)
  if type(err) == 'table' then
    local text = err.err
    if type(text) == 'string' or type(text) == 'number' then
      return text
    end
    -- Redis's leaves what it has looked at behind the table.
    return err, text
  end
  return err
end)

local function finish_plainly(ok, ...)
  if ok then
    return true, ...
  end
  return false, caught((...))
end

local function xpcall(...)
  if select('#', ...) < 2 then
    bad('xpcall', 2, 'value expected')
  end
  local f, handler = ...
  return finish_plainly(xpcall_(f, function(err)
    return handler(caught(err))
  end))
end

local function resume(...)
  local co = ...
  if type(co) ~= 'thread' then
    bad('resume', 1, 'coroutine expected')
  end
  return finish_plainly(resume_(...))
end

-- Tables ---------------------------------------------------------------------------------------------------

-- What `bad` is told of a first argument that is no table, if there is one.
local function no_table(...)
  if select('#', ...) == 0 then
    return 'table expected, got no value'
  end
  return 'table', (...)
end

local function next(...)
  local t, key = ...
  local content = behind[t]
  if content then
    return next_(content, key)
  elseif type(t) ~= 'table' then
    bad('next', 1, no_table(...))
  end
  return next_(t, key)
end

local function pairs(...)
  local t = ...
  if behind[t] then
    return next, t, nil
  elseif type(t) ~= 'table' then
    bad('pairs', 1, no_table(...))
  end
  return pairs_(t)
end

local function rawget(...)
  local t, key = ...
  if type(t) ~= 'table' then
    bad('rawget', 1, no_table(...))
  elseif select('#', ...) < 2 then
    bad('rawget', 2, 'value expected')
  end
  return rawget_(behind[t] or t, key)
end

local function rawset(...)
  local t, key, value = ...
  if type(t) ~= 'table' then
    bad('rawset', 1, no_table(...))
  elseif select('#', ...) < 3 then
    bad('rawset', 1 + select('#', ...), 'value expected')
  elseif behind[t] then
    deny()
  end
  return rawset_(t, key, value)
end

local string_metatable

local function getmetatable(...)
  if select('#', ...) == 0 then
    bad('getmetatable', 1, 'value expected')
  end
  local value = ...
  if behind[value] then
    return shown[value]
  elseif type(value) == 'string' then
    return string_metatable
  end
  return getmetatable_(value)
end

-- Far from the end it moves many elements: by a loop that can be interrupted.
local insert = rust.inserter(rust.deny, function(t, place, value)
  for i = #t + 1, place + 1, -1 do
    rawset_(t, i, rawget_(t, i - 1))
  end
  rawset_(t, place, value)
end)

local function sort(t, before)
  if type(t) ~= 'table' then
    bad('sort', 1, 'table', t)
  elseif before == nil then
    if #t < 64 or not rust.sort(t) then
      return sort_(t)
    end
    return
  elseif type(before) ~= 'function' then
    bad('sort', 2, 'function', before)
  end
  return sort_(t, before)
end

local function foreach(t, f)
  if type(t) ~= 'table' then
    bad('foreach', 1, 'table', t)
  elseif type(f) ~= 'function' then
    bad('foreach', 2, 'function', f)
  end
  return foreach_(behind[t] or t, f)
end

-- Chunks ---------------------------------------------------------------------------------------------------

-- Text only: what begins with the mark of a compiled chunk is not looked at further. Longer chunks could
-- overflow counters of the parser (CVE-2025-46819).
local COMPILED, CHUNK_MAX = 27, 2 ^ 28

local function load_text(text, name)
  if byte_(text) == COMPILED then
    local _, message = loadstring_('\1', name)
    return nil, (sub_(message, 1, -4)) .. "27)'"
  elseif len_(text) > CHUNK_MAX then
    return nil, 'chunk is too long'
  end
  local chunk, message = loadstring_(text, name)
  if not chunk then
    -- The parser gives back the end of the memory as an error of its own.
    caught(message)
  end
  return chunk, message
end

local function loadstring(...)
  local text, name = ...
  if type(text) ~= 'string' and type(text) ~= 'number' then
    if select('#', ...) == 0 then
      bad('loadstring', 1, 'string expected, got no value')
    end
    bad('loadstring', 1, 'string', text)
  end
  text = tostring(text)
  if name == nil then
    name = text
  elseif type(name) ~= 'string' and type(name) ~= 'number' then
    bad('loadstring', 2, 'string', name)
  end
  return load_text(text, tostring(name))
end

-- Reads all pieces before any is parsed: a function that runs while the parser does could have the parser's
-- strings collected (CVE-2025-49844).
local function load(read, name)
  if type(read) ~= 'function' then
    bad('load', 1, 'function', read)
  end
  local pieces = {}
  while true do
    local ok, piece = finish_plainly(pcall_(read))
    if not ok then
      return nil, type(piece) == 'table' and piece or { err = 'ERR ' .. tostring(piece) }
    elseif piece == nil or piece == '' then
      break
    elseif type(piece) ~= 'string' and type(piece) ~= 'number' then
      return nil, { err = 'ERR reader function must return a string' }
    end
    pieces[#pieces + 1] = piece
  end
  return load_text(concat_(pieces), name == nil and '=(load)' or tostring(name))
end

-- Strings --------------------------------------------------------------------------------------------------

-- What calls a script's function stands here, so that its errors pass as they are and it may be interrupted;
-- matching and building are Rust's.
local function gsub(...)
  local _, _, replace = ...
  local kind = type(replace)
  local result, subject, pattern, count_max, is_anchored = rust.gsub(...)
  if result then
    return result, subject
  end
  local pieces, count, copied, from, last = {}, 0, 1, 1, len_(subject) + 1

  local function put(first, final, ...)
    if not first then
      return false
    end
    local value
    if kind == 'table' then
      value = replace[(...)]
    else
      value = replace(...)
    end
    pieces[#pieces + 1] = sub_(subject, copied, first - 1)
    if not value then
      pieces[#pieces + 1] = sub_(subject, first, final)
    elseif type(value) == 'string' or type(value) == 'number' then
      pieces[#pieces + 1] = value
    else
      fail_behind('invalid replacement value (a ' .. type(value) .. ')')
    end
    copied = final + 1
    from = final >= first and final + 1 or first + 1
    return true
  end

  while count < count_max and from <= last and put(rust.gsub_next(subject, pattern, from)) do
    count = count + 1
    if is_anchored then
      break
    end
  end
  pieces[#pieces + 1] = sub_(subject, copied)
  return concat_(pieces), count
end

-- The environment --------------------------------------------------------------------------------------------

string.find, string.match, string.gmatch, string.gsub, string.rep =
  rust.find, rust.match, rust.gmatch, rust.quickly_gsub(gsub), rust.rep
string.gfind = string.gmatch
table.insert, table.sort, table.foreach = insert, sort, foreach
math.random, math.randomseed = rust.random, rust.randomseed
coroutine.resume = resume

local strings = string
-- Methods of strings read the table itself; what scripts can reach of the metatable is a face.
getmetatable_('').__index = strings

local missing = { __index = rust.missing }
local globals = setmetatable_({
  _VERSION = _VERSION,
  assert = assert,
  collectgarbage = rust.collectgarbage,
  error = error_,
  gcinfo = gcinfo,
  getmetatable = getmetatable,
  ipairs = ipairs,
  load = load,
  loadstring = loadstring,
  next = next,
  pairs = pairs,
  pcall = pcall,
  rawequal = rawequal,
  rawget = rawget,
  rawset = rawset,
  select = select,
  setmetatable = rust.setmetatable,
  tonumber = tonumber,
  tostring = tostring,
  type = type,
  unpack = rust.unpack,
  xpcall = xpcall,
  bit = face_of(rust.bit),
  cjson = face_of(rust.cjson),
  cmsgpack = face_of(rust.cmsgpack),
  coroutine = face_of(coroutine),
  math = face_of(math),
  os = face_of({ clock = os.clock }),
  redis = face_of(rust.redis),
  string = face_of(strings),
  struct = face_of(rust.struct),
  table = face_of(table),
}, missing)
globals.server = globals.redis
if not setup.is_library then
  globals.__redis__err__handler = rust.handler
end
local face = face_of(globals)
globals._G = face
shown[face] = face_of({ __index = rust.missing })
string_metatable = face_of({ __index = globals.string })

-- What a library has under a name: nobody can change it.
local function constant(library, name)
  local content = library ~= '_G' and behind[rawget_(globals, library)]
  if content then
    return rawget_(content, name)
  end
end

-- The environment of a library: while it loads it sees only what `setup.loading` holds, afterwards the
-- environment of its functions.
local loading = setmetatable_({ redis = face_of(setmetatable_(rust.loading or {}, missing)) }, missing)

local function library(chunk)
  local content = { __index = loading, __newindex = rust.deny }
  local environment = setmetatable_({}, content)
  behind[environment] = {}
  setfenv_(chunk, environment)
  return function()
    content.__index = globals
  end
end

return {
  face = face,
  globals = globals,
  load_text = load_text,
  constant = constant,
  library = library,
}
