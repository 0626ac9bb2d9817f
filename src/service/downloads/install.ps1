# Installs the client of Andromeda for this account, from @URL@, in Windows PowerShell 5.1 and later.
#
#   irm @URL@/install.ps1 | iex
#
# It needs no administrator. It writes to one directory ($env:ANDROMEDA_INSTALL_DIR, else %LOCALAPPDATA%\Programs\andromeda) and
# puts that into the Path of this account. $env:ANDROMEDA_INSTALL = 'executable' takes the program that needs no Node, where the
# service offers one; 'node' takes the one that does.

# In one block, so that half of this script does nothing.
& {
  $ErrorActionPreference = 'Stop'
  $ProgressPreference = 'SilentlyContinue'
  $url = '@URL@'
  $platformUrl = '@PLATFORM_URL@'
  $mjsSum = '@MJS_SUM@'
  # One line each: system, name, SHA-256.
  $executables = '@EXECUTABLES@' -split "`n"

  function Get-Verified([string] $from, [string] $to, [string] $sum) {
    Invoke-WebRequest -UseBasicParsing -Uri $from -OutFile $to
    $found = (Get-FileHash -Algorithm SHA256 -LiteralPath $to).Hash.ToLowerInvariant()
    if ($found -ne $sum) { throw "$from has the SHA-256 $found, and should have $sum. Try again; nothing was changed." }
  }

  # Windows PowerShell 5.1 begins with what is long out of use.
  [Net.ServicePointManager]::SecurityProtocol = [Net.ServicePointManager]::SecurityProtocol -bor [Net.SecurityProtocolType]::Tls12
  $major = 0
  if (Get-Command node -ErrorAction SilentlyContinue) {
    if ((& node --version) -match '^v(\d+)\.') { $major = [int] $Matches[1] }
  }
  $line = $executables | Where-Object { $_.StartsWith('win32-x64 ') } | Select-Object -First 1
  $kind = $env:ANDROMEDA_INSTALL
  if (-not $kind) { $kind = if ($major -ge @OLDEST_NODE@) { 'node' } else { 'executable' } }
  if ($kind -eq 'executable' -and -not $line) {
    throw "This machine needs Node @OLDEST_NODE@ or later (https://nodejs.org): $url offers no program for it that needs none. Nothing was changed."
  }
  if ($kind -eq 'node' -and $major -lt @OLDEST_NODE@) {
    throw "This machine has no Node @OLDEST_NODE@ or later; install it (https://nodejs.org). Nothing was changed."
  }

  $dir = $env:ANDROMEDA_INSTALL_DIR
  if (-not $dir) { $dir = Join-Path $env:LOCALAPPDATA 'Programs\andromeda' }
  New-Item -ItemType Directory -Force -Path $dir | Out-Null
  $temporary = Join-Path $dir ('.install-' + [Guid]::NewGuid().ToString('n'))
  New-Item -ItemType Directory -Path $temporary | Out-Null
  try {
    if ($kind -eq 'node') {
      $file = Join-Path $temporary 'andromeda.mjs'
      Get-Verified "$url/andromeda.mjs" $file $mjsSum
      & node $file --help | Out-Null
      if ($LASTEXITCODE -ne 0) { throw 'What was downloaded does not run here. Nothing was changed.' }
      $command = Join-Path $temporary 'andromeda.cmd'
      Set-Content -LiteralPath $command -Encoding Ascii -Value "@node `"%~dp0andromeda.mjs`" %*"
      Move-Item -Force -LiteralPath $file -Destination (Join-Path $dir 'andromeda.mjs')
      Move-Item -Force -LiteralPath $command -Destination (Join-Path $dir 'andromeda.cmd')
    } else {
      $null, $name, $sum = $line -split ' '
      $file = Join-Path $temporary 'andromeda.exe'
      Get-Verified "$url/download/$name" $file $sum
      & $file --help | Out-Null
      if ($LASTEXITCODE -ne 0) { throw 'What was downloaded does not run here. Nothing was changed.' }
      Move-Item -Force -LiteralPath $file -Destination (Join-Path $dir 'andromeda.exe')
    }
  } finally {
    Remove-Item -Recurse -Force -LiteralPath $temporary
  }

  $path = [Environment]::GetEnvironmentVariable('Path', 'User')
  if (($path -split ';') -notcontains $dir) {
    [Environment]::SetEnvironmentVariable('Path', (@($path, $dir) | Where-Object { $_ }) -join ';', 'User')
    $env:Path = "$env:Path;$dir"
    Write-Host "$dir was put into the Path of your account; windows that are open now have it only here."
  }
  Write-Host "Installed into $dir, as $url offers it, verified by its SHA-256."
  $quoted = [Management.Automation.Language.CodeGeneration]::EscapeSingleQuotedStringContent($dir)
  Write-Host "To undo it: Remove-Item -Recurse -LiteralPath '$quoted', and take it out of the Path of your account."
  Write-Host ''
  Write-Host 'Sign in:'
  Write-Host "    andromeda auth login --url $platformUrl"
}
