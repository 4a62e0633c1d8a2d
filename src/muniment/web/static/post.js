// What the button of this page does, at once.
"use strict";

document.forms[0].submit();
