"""Topics copied into files and back, at their own pace, and compared byte by byte."""
