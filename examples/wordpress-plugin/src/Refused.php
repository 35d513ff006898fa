<?php

namespace Profilesvc;

/**
 * Thrown where there is no token; carries the response to the last attempt.
 */
final class Refused extends \RuntimeException
{
    public Result $result;

    public function __construct(Result $result)
    {
        parent::__construct($result->code);
        $this->result = $result;
    }
}
